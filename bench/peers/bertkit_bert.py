"""bertkit's own BERT, beside which the step of a variant is timed that no peer has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.child import Fresh, serve
from bench.peers import bertkit
from bench.pipe import Array


def pretrain(model: str, array: Array, **settings: Any) -> Fresh:
    """The same step on the same batches, with the BERT that lies beside the variant."""
    return bertkit.pretrain(str(Path(model).with_name("bert") / "model"), array=array, **settings)


if __name__ == "__main__":
    serve({"pretrain": pretrain}, ["bertkit"])
