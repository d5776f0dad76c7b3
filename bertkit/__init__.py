"""bertkit: everything BERT, from raw text to a served and explained model, on the machine you have.

>>> import bertkit
>>> model = bertkit.load("minilm")
>>> model.embed(["Hello, world!"]).shape
(1, 384)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertkit.errors import BertkitError
    from bertkit.export.exported import Exported
    from bertkit.model import Guess, Model, create, list_models, load
    from bertkit.tasks.classifier import Classifier
    from bertkit.tasks.finetuned import Finetuned
    from bertkit.text import Tokenizer

__version__ = "0.1.0"
__all__ = [
    "BertkitError",
    "Classifier",
    "Exported",
    "Finetuned",
    "Guess",
    "Model",
    "Tokenizer",
    "__version__",
    "create",
    "list_models",
    "load",
]

_HOMES = {
    "BertkitError": "bertkit.errors",
    "Classifier": "bertkit.tasks.classifier",
    "Exported": "bertkit.export.exported",
    "Finetuned": "bertkit.tasks.finetuned",
    "Tokenizer": "bertkit.text",
}


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds misspelled names

    def __getattr__(name: str) -> Any:
        # importing bertkit must not import torch: what needs it is fetched when it is first used
        if name in __all__:
            return getattr(importlib.import_module(_HOMES.get(name, "bertkit.model")), name)
        raise AttributeError(f"module 'bertkit' has no attribute {name!r}. It has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
