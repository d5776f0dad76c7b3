"""Models as other engines read them, made by sentence-transformers at first use and kept in `.bench/models`.

A kept export is found by the content of its weights, so that a model that changes is exported anew.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from bench.peer import HOME
from bertkit import artifact


def opened(model: str, backend: str, options: dict[str, Any]) -> Any:
    """A SentenceTransformer on the given backend, with options for its engine."""
    from sentence_transformers import SentenceTransformer

    with (Path(model) / "model.safetensors").open("rb") as weights:
        content = hashlib.file_digest(weights, "sha256").hexdigest()[:16]
    path = HOME / "models" / f"{backend}-{content}"
    if not path.exists():
        with artifact.directory(path, "export") as temporary:
            SentenceTransformer(model, backend=backend).save_pretrained(str(temporary))
    return SentenceTransformer(str(path), backend=backend, model_kwargs=options)
