"""A classifier in the manner of scikit-learn: `fit`, `predict`, `predict_proba`, `score`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np

from bertkit import artifact
from bertkit.errors import BertkitError, unknown
from bertkit.tasks.classification import Classification
from bertkit.tasks.finetune import finetune
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.guess import in_order
from bertkit.tasks.layout import TableLayout
from bertkit.tasks.tuning import EPOCHS, RATE, ROWS, Tuning
from bertkit.train.optimizer import Adam

Array = np.ndarray[Any, np.dtype[Any]]
Given = str | tuple[str, str]
"""a text, or a pair"""

GIVEN = "texts.jsonl"
"""what was given to `fit`, in the run's directory"""
LAYOUT = TableLayout(("text",), (), ("label",))
PAIRS = TableLayout(("text",), ("pair",), ("label",))


class Classifier:
    """Learns labels from texts, or from pairs of them (tuples).

    >>> from bertkit import Classifier
    >>> texts = ["a fine film", "what a joy", "a dull film", "what a bore"]
    >>> learned = Classifier("minilm", epochs=8, batch=4, rate=2e-4).fit(texts, ["good", "good", "bad", "bad"])
    >>> learned.predict(["a joy of a film", "dull, what a bore"]).tolist()
    ['good', 'bad']
    """

    def __init__(
        self,
        model: str = "minilm",
        *,
        epochs: float = EPOCHS,
        rate: float = RATE,
        batch: int = ROWS,
        length: int = 0,
        held_out: float = 0.0,
        patience: int = 0,
        seed: int = 0,
        output: str | None = None,
    ) -> None:
        self.model, self.epochs, self.rate, self.batch, self.length = model, epochs, rate, batch, length
        self.held_out, self.patience, self.seed = held_out, patience, seed
        self.output = output
        """the run's directory, to go on in after a kill; if None, nothing is kept but what is learned"""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with, as scikit-learn asks for it."""
        names = ("model", "epochs", "rate", "batch", "length", "held_out", "patience", "seed", "output")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Change what it was made with."""
        for name, value in params.items():
            if name not in self.get_params():
                raise unknown("parameter of Classifier", name, self.get_params())
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"Classifier({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        inputs = InputTags(string=True, two_d_array=False, one_d_array=True)
        return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags(), input_tags=inputs)

    def fit(self, texts: Sequence[Given], labels: Sequence[Any]) -> Self:
        """Learn. Labels may be any values; those of `predict` are the same."""
        rows = _rows(texts, labels)
        self._names = {str(label): label for label in labels}
        self.classes_: Array = np.array([self._names[name] for name in in_order(set(self._names))])
        with ExitStack() as stack:
            home = self.output or stack.enter_context(tempfile.TemporaryDirectory())
            self.finetuned_ = self._learned(rows, Path(home))
        return self

    def _learned(self, rows: list[dict[str, str]], run: Path) -> Finetuned:
        run.mkdir(parents=True, exist_ok=True)
        with artifact.file(run / GIVEN, overwrite=True) as file:
            file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
        tuning = Tuning(
            output=str(run),
            model=self.model,
            task=Classification(in_order(set(self._names))),
            layout=PAIRS if "pair" in rows[0] else LAYOUT,
            train=str(run / GIVEN),
            limit=self.length,
            epochs=self.epochs,
            rows=self.batch,
            optimizer=Adam(rate=self.rate),
            held_out=self.held_out,
            patience=self.patience,
            seed=self.seed,
        )
        return Finetuned.load(finetune(tuning))

    def predict(self, texts: Sequence[Given]) -> Array:
        """The likeliest label of each, [N]."""
        found = [self._names[answer.label] for answer in self._answers(texts)]
        return np.array(found, dtype=self.classes_.dtype)

    def predict_proba(self, texts: Sequence[Given]) -> Array:
        """How likely each label is, [N, C], in the order of `classes_`."""
        return np.array([list(answer.scores.values()) for answer in self._answers(texts)])

    def score(self, texts: Sequence[Given], labels: Sequence[Any]) -> float:
        """The share of texts whose label is right."""
        return float(np.mean(self.predict(texts) == np.asarray(labels)))

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Keep what was learned: a directory that transformers opens, and `bertkit predict`."""
        from bertkit.tasks.card import card

        return self._fitted.save(path, card(self._fitted), overwrite)

    @property
    def _fitted(self) -> Finetuned:
        if not hasattr(self, "finetuned_"):
            raise BertkitError("this Classifier has learned nothing yet: call fit(texts, labels) first")
        return self.finetuned_

    def _answers(self, texts: Sequence[Given]) -> list[Any]:
        if isinstance(texts, str):
            raise BertkitError("texts is a str: give a list of texts")
        return self._fitted.predict(texts)


def _rows(texts: Sequence[Given], labels: Sequence[Any]) -> list[dict[str, str]]:
    """Texts and labels as rows of a table."""
    if isinstance(texts, str) or len(texts) != len(labels) or not len(texts):
        given = "a str" if isinstance(texts, str) else f"{len(texts)} texts and {len(labels)} labels"
        raise BertkitError(f"fit was given {given}: give a list of texts and as many labels")
    rows = []
    for number, (text, label) in enumerate(zip(texts, labels, strict=True)):
        fields = (text,) if isinstance(text, str) else text
        if not (isinstance(fields, tuple) and len(fields) in (1, 2) and all(isinstance(one, str) for one in fields)):
            raise BertkitError(f"texts[{number}] is {text!r}: give a str, or a tuple of two for a pair")
        rows.append({"label": str(label), **dict(zip(("text", "pair"), fields, strict=False))})
    if len({"pair" in row for row in rows}) > 1:
        raise BertkitError("some texts are pairs and some are not: give one kind")
    return rows
