"""As `google`, but with one copy of the text: masks and pairs for a single epoch."""

from __future__ import annotations

from bench.child import Fresh, serve
from bench.peers import google


def shards(model: str, text: str) -> Fresh:
    """A file of text to the instances of one epoch."""
    return google.shards(model, text, copies=1)


if __name__ == "__main__":
    serve({"shards": shards}, [])
