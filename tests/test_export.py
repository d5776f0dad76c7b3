"""Exports: what a stranger's runtime makes of the file is what the model says; nothing is kept that is off."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

import bertkit
from bertkit import packages
from bertkit.batch import Layout, Padded, collate
from bertkit.errors import BertkitError
from bertkit.export import export as exporting
from bertkit.export import speaker
from bertkit.export.ending import ending_of
from bertkit.export.export import Export, export
from bertkit.export.exported import Exported
from bertkit.export.program import Program, ProgramModule
from bertkit.export.speaker import Live
from bertkit.family import bert
from bertkit.model import Model
from bertkit.parts.pool import Cls, FirstLast, LastToken
from bertkit.runtime.engines.graph import Graph
from bertkit.runtime.stream import example
from bertkit.tasks.classification import Classification
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.layout import TableLayout
from bertkit.text import Tokenizer
from bertkit.text.truncate import Cut, KeepHead
from bertkit.weights.int8 import CONFIG, Quantization
from tests.exporting import HEADS, LABELS, LIMIT, TEXTS, VOCABULARY, encoders, model, saved, small
from tests.runtime.networks import network

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'bertkit[engines]'")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'bertkit[engines]'")
pytest.importorskip("openvino", reason="needs openvino: pip install 'bertkit[engines]'")

OUTPUTS = {
    **{name: {"sentence_embedding", "token_embeddings"} for name in ("mean", "cls", "dense")},
    **{name: {"logits"} for name in HEADS},
    "span": {"start_logits", "end_logits"},
}
PLAIN = [text for text in TEXTS if isinstance(text, str)]


def exported(home: Path, name: str = "mean", to: str = "onnx", **settings: Any) -> Export:
    """An export of a small model."""
    return export(saved(home, name), home / f"{name}-{to}", to, **settings)


def expected(source: Model, head: str | None = None) -> list[dict[str, np.ndarray]]:
    """What torch says of all texts, one after the other."""
    alone = Live(ending_of(source, head))
    rows = alone.examples([text if isinstance(text, tuple) else (text,) for text in TEXTS], KeepHead(), Cut())
    return [{name: values[0] for name, values in alone.said([row]).items()} for row in rows]


def same(left: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> bool:
    return left.keys() == right.keys() and all(
        left[name].shape == right[name].shape and np.abs(left[name] - right[name]).max() <= 1e-4 for name in left
    )


def all_same(left: list[dict[str, np.ndarray]], right: list[dict[str, np.ndarray]]) -> bool:
    return all(same(*pair) for pair in zip(left, right, strict=True))


@pytest.mark.parametrize("to", ["onnx", "openvino"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_graphs_say_what_the_model_says(name: str, to: str, tmp_path: Path) -> None:
    made = exported(tmp_path, name, to)
    assert made.check.largest <= 1e-4
    rows = list(Exported.load(made.path).rows(TEXTS, cut=Cut()))
    assert rows[0].keys() == OUTPUTS[name]
    assert all_same(rows, expected(bertkit.load(tmp_path / f"bert-{name}")))


@pytest.mark.parametrize("name", ["mean", "cls", "dense"])
def test_vectors_are_those_of_embed(name: str, tmp_path: Path) -> None:
    rows = Exported.load(exported(tmp_path, name).path).rows(PLAIN, cut=Cut())
    vectors = bertkit.load(tmp_path / f"bert-{name}").embed(PLAIN)
    assert np.abs(np.stack([row["sentence_embedding"] for row in rows]) - vectors).max() <= 1e-5
    assert vectors.shape[1] == (6 if name == "dense" else 16)


@pytest.mark.parametrize("family", ["albert", "nezha"])
@pytest.mark.parametrize("name", ["mean", "mlm"])
def test_other_families(family: str, name: str, tmp_path: Path) -> None:
    source = saved(tmp_path, name, encoders()[family], family)
    rows = list(Exported.load(export(source, tmp_path / "out").path).rows(TEXTS, cut=Cut()))
    assert all_same(rows, expected(bertkit.load(source)))


def test_an_export_is_no_model_to_load(tmp_path: Path) -> None:
    with pytest.raises(
        BertkitError, match=r"is an export, without weights to learn on: bertkit\.Exported\.load opens it"
    ):
        bertkit.load(exported(tmp_path, "mean").path)


def test_a_stranger_needs_nothing_of_ours(tmp_path: Path) -> None:
    made = exported(tmp_path, "classify")
    tokenizer = AutoTokenizer.from_pretrained(made.path)
    session = runtime.InferenceSession(str(made.path / "model.onnx"))
    given = tokenizer(["the cat", "a dog played on the mat"], padding=True, return_tensors="np")
    assert {one.name for one in session.get_inputs()} == set(given)
    (logits,) = session.run(["logits"], {name: values.astype(np.int64) for name, values in given.items()})
    said = np.concatenate(
        list(bertkit.load(tmp_path / "bert-classify").logits(["the cat", "a dog played on the mat"], "classify"))
    )
    assert np.abs(logits - said).max() <= 1e-5
    config = json.loads((made.path / "config.json").read_text())
    assert list(config["id2label"].values()) == list(LABELS)


def test_the_page_about_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "export.md").read_text(encoding="utf-8")
    export(saved(tmp_path, "mean"), tmp_path / "minilm-onnx")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for snippet in re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        exec(compile(snippet, "export.md", "exec"), names)
    assert names["vectors"].shape == (2, 16)
    assert np.abs(names["vectors"][1] - names["row"]["sentence_embedding"]).max() <= 1e-6


def test_rows_and_tokens_are_free(tmp_path: Path) -> None:
    session = runtime.InferenceSession(str(exported(tmp_path, "tag").path / "model.onnx"))
    for rows, tokens in ((1, 2), (5, 7), (2, LIMIT)):
        ones = np.ones((rows, tokens), np.int64)
        (logits,) = session.run(None, {one.name: ones for one in session.get_inputs()})
        assert logits.shape == (rows, tokens, 3)


def test_what_lies_beside_the_graph(tmp_path: Path) -> None:
    made = exported(tmp_path, "dense")
    sheet = json.loads((made.path / "export.json").read_text())
    assert sheet["bertkit"] == bertkit.__version__
    assert (sheet["format"], sheet["family"], sheet["head"], sheet["limit"]) == ("onnx", "bert", "sentence", LIMIT)
    assert sheet["inputs"] == ["input_ids", "attention_mask", "token_type_ids"]
    assert sheet["outputs"] == {"sentence_embedding": ["B", 6], "token_embeddings": ["B", "L", 16]}
    assert sheet["tokenizer"] == Tokenizer.load(made.path).fingerprint
    assert sheet["check"]["largest_difference"] == made.check.largest <= 1e-5
    assert bertkit.artifact.verify(made.path).kind == "export"


def test_a_finetuned_model_brings_its_task(tmp_path: Path) -> None:
    task, layout = Classification(LABELS), TableLayout(("text",), label=("label",))
    tuned = Finetuned(model("classify"), task, layout, KeepHead())
    tuned.save(tmp_path / "run" / "model", "a card")
    made = export(tmp_path / "run", tmp_path / "out")
    assert made.sheet.labels == LABELS
    assert json.loads((made.path / "task.json").read_text())["task"]["labels"] == list(LABELS)
    (row,) = Exported.load(made.path).rows(["the cat"])
    assert LABELS[int(row["logits"].argmax())] == tuned.predict(["the cat"])[0].label


def test_heads_are_chosen(tmp_path: Path) -> None:
    assert exported(tmp_path, "classify", head="sentence").sheet.head == "sentence"
    several = network(small(), {**HEADS["mlm"], **HEADS["tag"]})
    many = Model(several, model("mlm").tokenizer).save(tmp_path / "many")
    with pytest.raises(BertkitError, match=r"several heads, mlm, tag: choose one with head= \(--head\), or 'sen"):
        export(many, tmp_path / "out")
    assert export(many, tmp_path / "out", head="tag").sheet.kind == "Tag"
    with pytest.raises(BertkitError, match="unknown head of this model 'tags': did you mean 'tag'"):
        export(many, tmp_path / "other", head="tags")


def test_a_graph_that_is_off_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = exported(tmp_path, "mean")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in made.path.iterdir())
    weight = Graph.weight

    def wrong(graph: Graph, name: str) -> str:
        if name == "encoder.embed.segments.weight" and graph.weights[name][1, 0] < 100:
            graph.weights[name] = graph.weights[name].copy()
            graph.weights[name][1, 0] += 100  # the second segment alone
        return weight(graph, name)

    monkeypatch.setattr(Graph, "weight", wrong)
    with pytest.raises(BertkitError, match=r"was not written: over \d+ rows its onnx file differs .* 0.0001 is let"):
        export(tmp_path / "bert-mean", made.path, overwrite=True)
    with pytest.raises(BertkitError, match="its openvino file differs"):
        export(tmp_path / "bert-mean", tmp_path / "new", "openvino")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in made.path.iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bert-mean", "mean-onnx"]


def test_weights_that_are_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = model("classify")
    damaged.network.heads["classify"].dense.weight.data[0, 0] = float("nan")
    damaged.save(tmp_path / "source")
    with pytest.raises(BertkitError, match=r"heads.classify.dense.weight holds values that are no finite numbers"):
        export(tmp_path / "source", tmp_path / "out")
    monkeypatch.setattr(exporting, "_require_numbers", lambda ending: None)
    with pytest.raises(BertkitError, match="differs from the model by up to nan"):
        export(tmp_path / "source", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_swapped_tokenizer(tmp_path: Path) -> None:
    made = exported(tmp_path, "mean")
    swapped = [*VOCABULARY[:5], *VOCABULARY[5:][::-1]]
    Tokenizer.from_vocabulary(swapped, limit=LIMIT).save_files(made.path)
    with pytest.raises(BertkitError, match=r"is not the one that the graph was exported with .* Put the files"):
        Exported.load(made.path)


def test_damaged_and_foreign_directories(tmp_path: Path) -> None:
    made = exported(tmp_path, "mean")
    with pytest.raises(BertkitError, match=r"is no export, for it has no export\.json"):
        Exported.load(tmp_path / "bert-mean")
    with pytest.raises(BertkitError, match="is an export already: give the model"):
        export(made.path, tmp_path / "again")
    with (made.path / "model.onnx").open("ab") as file:
        file.write(b"x")
    with pytest.raises(BertkitError, match=r"'model\.onnx' has"):
        Exported.load(made.path)
    (made.path / "export.json").write_text("{}")
    with pytest.raises(BertkitError, match=r"export.json: \w+ is missing: copy the export again"):
        Exported.load(made.path)


@pytest.mark.parametrize(("to", "package"), [("onnx", "onnxruntime"), ("onnx", "onnx"), ("openvino", "openvino")])
def test_a_missing_package(to: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = packages.load

    def missing(name: str) -> Any:
        if name == package:
            raise ImportError(name)
        return load(name)

    monkeypatch.setattr(packages, "load", missing)
    with pytest.raises(BertkitError, match=rf"{to} needs {package}, which is not installed: pip install 'bertkit\[eng"):
        export(tmp_path, tmp_path / "out", to)


def test_int8_stays_int8_in_onnx(tmp_path: Path) -> None:
    whole = model("classify", bert.encoder("tiny", len(VOCABULARY)))
    whole.config[CONFIG] = Quantization("onnx", ("encoder.feeds.0.up",)).told()
    whole.save(tmp_path / "source")
    made = export(tmp_path / "source", tmp_path / "out")
    assert made.sheet.precision == "int8"
    assert made.check.cosine >= 0.95
    stored = {one.name for one in onnx.load(made.path / "model.onnx").graph.initializer}
    assert "encoder.feeds.0.down.weight_quantized" in stored
    assert {"encoder.feeds.0.up.weight", "heads.classify.dense.weight"} <= stored
    with pytest.raises(BertkitError, match="this model is int8, and openvino files hold floats: export it to onnx"):
        export(tmp_path / "source", tmp_path / "other", "openvino")


def test_any_number_of_texts_in_order_and_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Exported.load(exported(tmp_path, "mlm").path)
    texts = ["the cat " * (number % 7) for number in range(300)]
    once = list(made.rows(texts))
    monkeypatch.setattr(speaker, "HELD", 1)  # a text at a time
    again = list(made.rows(iter(texts)))
    assert [len(row["logits"]) for row in once] == [2 + 2 * (number % 7) for number in range(300)]
    assert all_same(once, again)
    assert list(made.rows([])) == []


def test_long_texts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = Exported.load(exported(tmp_path, "mean").path)
    long, cut = "the dog " * 40, Cut()
    head, tail = (next(made.rows([long + "猫"], how, cut))["token_embeddings"] for how in ("head", "tail"))
    assert len(head) == len(tail) == LIMIT
    assert not np.allclose(head, tail)
    list(made.rows([long]))
    assert "1 of 1 text cut to 40 tokens (42 tokens lost)" in caplog.text
    with pytest.raises(BertkitError, match=r"texts\[0\]: it has 80 tokens"):
        list(made.rows([long], "error"))
    with pytest.raises(BertkitError, match="reads one window of each text"):
        list(made.rows([long], "chunk"))
    with pytest.raises(BertkitError, match="text 1 is None"):
        list(made.rows(["a", None]))  # type: ignore[list-item]
    with pytest.raises(BertkitError, match="texts is one str"):
        list(made.rows("the cat"))


def test_prompts(tmp_path: Path) -> None:
    source = model("mean")
    source.prompts, source.default_prompt = {"query": "the dog "}, "query"
    source.save(tmp_path / "source")
    made = Exported.load(export(tmp_path / "source", tmp_path / "out").path)
    (row,) = made.rows(["runs"])
    assert made.prompt == "the dog "
    with pytest.raises(BertkitError, match="the prompt 'the dog ' stands before single texts: give no pairs"):
        list(made.rows([("the cat", "runs")]))
    assert np.abs(row["sentence_embedding"] - source.embed("runs")).max() <= 1e-5
    source.include_prompt = False
    source.save(tmp_path / "blind")
    with pytest.raises(BertkitError, match="leave out the prompt 'the dog ', which a graph cannot"):
        export(tmp_path / "blind", tmp_path / "other")


# torch.export ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", OUTPUTS)
def test_programs_say_what_the_model_says(name: str, tmp_path: Path) -> None:
    made = exported(tmp_path, name, "torch-export")
    rows = list(Exported.load(made.path).rows(TEXTS, cut=Cut()))
    assert all_same(rows, expected(bertkit.load(tmp_path / f"bert-{name}")))
    program = torch.export.load(made.path / "model.pt2").module()
    one = torch.ones(1, 2, dtype=torch.long)
    assert program(input_ids=one, attention_mask=one, token_type_ids=one).keys() == OUTPUTS[name]


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_is_followed_is_the_model(name: str) -> None:
    """The module that torch.export follows, as it is: following it takes seconds."""
    source = model(name)
    rows = [example([2, 6, 7, 3]), example([2, *range(5, 20), 3], [0] * 9 + [1] * 8)]
    batch = collate(rows, Padded)
    given = batch.tokens["ids"], batch.layout.mask.long(), batch.tokens["segments"]
    with torch.inference_mode():
        said = ProgramModule(ending_of(source))(*given)
    for number, row in enumerate(rows):
        alone = {key: x[0] for key, x in Live(ending_of(source)).said([row]).items()}
        seen = {key: x[number, : len(row)] if x.shape[1:2] == (17,) else x[number] for key, x in said.items()}
        assert same({key: x.numpy() for key, x in seen.items()}, alone)


def test_a_program_of_other_positions(tmp_path: Path) -> None:
    source = saved(tmp_path, "span", encoders()["nezha"], "nezha")
    assert export(source, tmp_path / "out", "torch-export").check.largest <= 1e-4


def test_a_program_without_its_manifest_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "write", lambda self, ending, product, path: path.write_bytes(b"code"))
    monkeypatch.setattr(Program, "open", lambda self, path, inputs: pytest.fail("opened"))
    monkeypatch.setattr(exporting, "_checked", lambda *given: exporting.Check(1, 0.0, 1.0))
    made = exported(tmp_path, "tag", "torch-export")
    manifest = made.path / "bertkit-manifest.json"
    told = json.loads(manifest.read_text())
    del told["files"]["model.pt2"]
    manifest.write_text(json.dumps(told))
    for _ in range(2):
        with pytest.raises(
            BertkitError, match=r"has no manifest that knows its model\.pt2, .* may run code that is in"
        ):
            Exported.load(made.path)
        manifest.unlink(missing_ok=True)


def test_a_program_of_last_tokens(tmp_path: Path) -> None:
    source = model("cls")
    source.pool = LastToken()
    source.save(tmp_path / "source")
    made = export(tmp_path / "source", tmp_path / "out", "torch-export")
    rows = Exported.load(made.path).rows(PLAIN, cut=Cut())
    assert np.abs(np.stack([row["sentence_embedding"] for row in rows]) - source.embed(PLAIN)).max() <= 1e-5


def test_what_cannot_be_followed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reduce(self: Cls, states: Sequence[torch.Tensor], layout: Layout) -> torch.Tensor:
        return layout.first(states[0]) * (1.0 if float(states[0].sum()) else 2.0)  # numbers decide what is done

    monkeypatch.setattr(Cls, "reduce", reduce)
    model("cls").save(tmp_path / "source")
    with pytest.raises(BertkitError, match=r"torch.export cannot follow this model: .* Export to onnx instead"):
        export(tmp_path / "source", tmp_path / "out", "torch-export")
    assert not (tmp_path / "out").exists()


def test_pools_of_several_layers() -> None:
    source = model("cls")
    source.pool = FirstLast()
    vectors = next(Live(ending_of(source, "sentence")).rows(["the cat"]))["sentence_embedding"]
    assert np.abs(vectors - source.embed("the cat")).max() <= 1e-6
    source.pool = FirstLast(first=9)
    with pytest.raises(BertkitError, match="its pool reads layer 9, but this model has 0"):
        ending_of(source, "sentence")
