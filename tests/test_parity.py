"""Parity: what two of a kind say side by side, in numbers and in answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bertkit
from bertkit.errors import BertkitError
from bertkit.export.export import export
from bertkit.parity import DECISIONS, Parity, parity
from bertkit.tasks.classification import Classification
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.layout import TableLayout
from bertkit.text import Tokenizer
from bertkit.text.truncate import KeepHead
from tests.exporting import LABELS, model, saved

pytest.importorskip("onnx", reason="needs onnx: pip install 'bertkit[engines]'")
pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'bertkit[engines]'")


def moved(home: Path, name: str, by: float) -> Path:
    """The same model with one weight changed."""
    other = model(name)
    other.network.encoder.embed.norm.bias.data[0] += by
    return other.save(home / "moved")


def test_numbers_by_hand() -> None:
    found = Parity()
    found.add({"x": np.array([3.0, 4.0])}, {"x": np.array([3.0, 4.0])})
    found.add({"x": np.array([1.0, 0.0])}, {"x": np.array([0.0, 2.0])})
    assert (found.texts, found.largest, found.cosine) == (2, 2.0, 0.0)
    assert (found.mean, found.mean_cosine) == (0.75, 0.5)
    found.add({"x": np.zeros(2)}, {"x": np.zeros(2)})
    assert (found.texts, found.cosine) == (3, 0.0)
    found.add({"x": np.array([np.nan, 0.0])}, {"x": np.zeros(2)})
    found.add({"x": np.zeros(2)}, {"x": np.zeros(2)})
    assert np.isnan(found.largest)


def test_a_model_and_its_export(tmp_path: Path) -> None:
    source = saved(tmp_path, "mean")
    found = parity(source, export(source, tmp_path / "out").path)
    assert found.texts == 40
    assert 0 < found.largest <= 1e-5
    assert found.cosine > 0.999999
    assert found.answers == 0, "vectors decide nothing"
    assert parity(source, source).largest == 0


def test_an_export_says_which_head_is_meant(tmp_path: Path) -> None:
    source = saved(tmp_path, "classify")
    found = parity(source, export(source, tmp_path / "out", head="sentence").path)
    assert (found.answers, found.largest <= 1e-5) == (0, True)


def test_changed_labels(tmp_path: Path) -> None:
    source, other = saved(tmp_path, "classify"), moved(tmp_path, "classify", 8.0)
    data = tmp_path / "lines.txt"
    data.write_text("the cat\n\na dog sat on a mat .\n猫 狗\n")
    found = parity(source, other, data)
    texts = ["the cat", "a dog sat on a mat .", "猫 狗"]
    labels = [
        [LABELS[row.argmax()] for rows in bertkit.load(path).logits(texts, "classify") for row in rows]
        for path in (source, other)
    ]
    changed = [(text, a, b) for text, a, b in zip(texts, *labels, strict=True) if a != b]
    assert (found.texts, found.answers, found.changed) == (3, 3, len(changed))
    assert [(one.text, one.first, one.second) for one in found.examples] == changed
    assert changed, "else nothing is tested"


@pytest.mark.parametrize("name", ["tag", "span", "mlm"])
def test_answers_about_tokens(name: str, tmp_path: Path) -> None:
    source, other = saved(tmp_path, name), moved(tmp_path, name, 20.0)
    same, found = parity(source, source), parity(source, other)
    assert same.changed == 0 < found.changed <= found.answers == same.answers
    assert found.told()["examples"][0].keys() == {"text", "a", "b"}


def test_decisions() -> None:
    class Speaker:
        labels, tokenizer = ("red", "blue"), Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])

    said = {"logits": np.array([-1.0, 2.0])}
    assert DECISIONS["Classify"](said, Speaker) == ["blue"]
    assert DECISIONS["MultiLabel"](said, Speaker) == ["not red", "blue"]
    assert DECISIONS["NextSentence"](said, Speaker) == ["does not follow"]
    assert DECISIONS["Detect"](said, Speaker) == ["original", "replaced"]
    assert DECISIONS["Tag"]({"logits": np.eye(2)}, Speaker) == ["red", "blue"]
    assert DECISIONS["Mlm"]({"logits": np.eye(3, 9)}, Speaker) == ["[PAD]", "[UNK]", "[CLS]"]
    assert DECISIONS["Span"]({"s": np.array([0, 1, 0]), "e": np.array([0, 0, 1])}, Speaker) == ["1-2"]


def test_a_run_reads_its_own_columns(tmp_path: Path) -> None:
    layout = TableLayout(("body",), ("answer",), ("fits",))
    tuned = Finetuned(model("classify"), Classification(LABELS), layout, KeepHead())
    tuned.save(tmp_path / "run" / "model", "a card")
    out = export(tmp_path / "run", tmp_path / "out").path
    data = tmp_path / "rows.csv"
    data.write_text("fits,body,answer\na,the cat,sat on a mat\nb,the dog,runs\n")
    for first, second in ((tmp_path / "run", out), (out, tmp_path / "run")):
        found = parity(first, second, data)
        assert (found.texts, found.answers, found.changed) == (2, 2, 0)
        assert found.largest <= 1e-5


def test_pairs_are_single_texts_for_vectors(tmp_path: Path) -> None:
    source = saved(tmp_path, "mean")
    data = tmp_path / "rows.tsv"
    data.write_text("sentence1\tsentence2\tscore\nthe cat\ta cat\t4.5\nthe dog\ta mat\t1.0\n")
    assert parity(source, source, data).texts == 4


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    vectors, labels = saved(tmp_path, "mean"), saved(tmp_path, "classify")
    with pytest.raises(BertkitError, match=r"says sentence_embedding \['B', 16\], and .* logits \['B', 3\]: only what"):
        parity(vectors, labels)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    with pytest.raises(BertkitError, match="holds no texts"):
        parity(vectors, vectors, empty)
    other = model("tag")
    other.limit = 9
    other.tokenizer._opened.limit = 9
    with pytest.raises(BertkitError, match=r"as 9 and .* tokens: their tokenizers or their limits"):
        parity(other.save(tmp_path / "short"), saved(tmp_path, "tag"))
