"""bertkit with one of its engines, for auto to be measured against."""

from __future__ import annotations

from bench.child import serve
from bench.peers.bertkit import jobs_of

if __name__ == "__main__":
    serve(jobs_of("onednn"), ["bertkit"])
