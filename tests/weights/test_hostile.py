"""Damaged, truncated, mismatched, hostile files end in one clear error that names the file; nothing runs or stays."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import bertkit
from bertkit.errors import BertkitError
from bertkit.parts.heads import Pooler
from bertkit.text import Tokenizer
from proofs import damage

WITNESS = "witness-of-code-that-ran"


class Evil:
    """A pickle that makes a file when it is opened carelessly."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {WITNESS}",)


@pytest.fixture
def model(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A good directory without its manifest, as a stranger would hand it over."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model"
    bertkit.create("bert-tiny", tokenizer, {"pooler": Pooler()}, seed=0).save(path)
    (path / "bertkit-manifest.json").unlink()
    return path


def safetensors(header: object, data: bytes = b"", size: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def tensor(begin: int, end: int, shape: list[int], kind: str = "F32") -> dict[str, object]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


SAFE = {
    "empty": b"",
    "a few bytes": b"\x00" * 7,
    "a pickle": pickle.dumps({"x": 1}),
    "not JSON": safetensors(b"{nonsense"),
    "not UTF-8": safetensors(b'{"\xff": 1}'),
    "header longer than the file": safetensors({}, size=10**15),
    "header length of all ones": safetensors({}, size=2**64 - 1),
    "overlapping tensors": safetensors({"a": tensor(0, 8, [2]), "b": tensor(4, 12, [2])}, b"\0" * 12),
    "a hole between tensors": safetensors({"a": tensor(0, 4, [1]), "b": tensor(8, 12, [1])}, b"\0" * 12),
    "data beyond the end": safetensors({"a": tensor(0, 4000, [1000])}, b"\0" * 8),
    "shape that is not its size": safetensors({"a": tensor(0, 8, [5])}, b"\0" * 8),
    "shape that overflows": safetensors({"a": tensor(0, 8, [2**62, 2**62])}, b"\0" * 8),
    "offsets backwards": safetensors({"a": tensor(8, 0, [2])}, b"\0" * 8),
    "unknown numbers": safetensors({"a": tensor(0, 8, [2], "F99")}, b"\0" * 8),
    "trailing bytes": safetensors({"a": tensor(0, 4, [1])}, b"\0" * 400),
    "deep nesting": safetensors(b"[" * 100_000),
}


@pytest.mark.parametrize("case", SAFE)
def test_hostile_safetensors(case: str, model: Path) -> None:
    (model / "model.safetensors").write_bytes(SAFE[case])
    refused(model, "model.safetensors is not a whole safetensors file")


def refused(model: Path, message: str) -> None:
    before = sorted(path.name for path in model.parent.rglob("*"))
    with pytest.raises(BertkitError, match=message) as caught:
        bertkit.load(model)
    assert str(model) in str(caught.value), "the file is named"
    assert "\n" not in str(caught.value), "one line"
    assert len(str(caught.value)) < 700
    assert sorted(path.name for path in model.parent.rglob("*")) == before, "nothing is left behind, nothing ran"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_truncated_safetensors(share: float, model: Path) -> None:
    file = model / "model.safetensors"
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    refused(model, "model.safetensors is not a whole safetensors file")


def compressed() -> bytes:
    """A torch archive whose content is deflated: a small file that would fill the memory."""
    plain = io.BytesIO()
    torch.save({"a": torch.zeros(100_000)}, plain)
    packed = io.BytesIO()
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    return packed.getvalue()


def saved(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


PICKLES = {
    "code in a plain pickle": (lambda: pickle.dumps(Evil()), "wants to run code"),
    "code in an archive": (lambda: saved({"a": Evil()}), "wants to run code"),
    "code among tensors": (lambda: saved({"a": torch.zeros(2), "b": Evil()}), "wants to run code"),
    "empty": (lambda: b"", "damaged"),
    "half an archive": (lambda: saved({"a": torch.zeros(1000)})[:2000], "damaged"),
    "not a table": (lambda: saved([torch.zeros(2)]), "holds a list, not tensors by name"),
    "numbers as names": (lambda: saved({1: torch.zeros(2)}), "not tensors by name"),
    "a compression bomb": (compressed, "compressed inside"),
    "text": (lambda: b"hello", "damaged"),
}


@pytest.mark.parametrize("case", PICKLES)
def test_hostile_pickles(case: str, model: Path) -> None:
    (model / "model.safetensors").unlink()
    make, message = PICKLES[case]
    (model / "pytorch_model.bin").write_bytes(make())
    refused(model, message)
    assert not Path(WITNESS).exists()


STRETCHED = {
    "one number stretched": lambda: {"a": torch.zeros(1).expand(2**28, 128)},
    "windows that overlap": lambda: {"a": torch.zeros(2000).as_strided((1000, 1000), (1, 1))},
    "one storage a thousand times": lambda: dict.fromkeys(map(str, range(1000)), torch.zeros(1000)),
    "no numbers at all": lambda: {"a": torch.zeros(2**40, device="meta")},
    "sparse": lambda: {"a": torch.sparse_coo_tensor([[0], [0]], [1.0], (2**20, 2**20), check_invariants=True)},
}


@pytest.mark.parametrize("case", STRETCHED)
@pytest.mark.parametrize("archive", [True, False])
def test_pickled_tensors_that_claim_more_than_their_file_holds(case: str, archive: bool, model: Path) -> None:
    (model / "model.safetensors").unlink()
    torch.save(STRETCHED[case](), model / "pytorch_model.bin", _use_new_zipfile_serialization=archive)
    refused(model, r"more numbers than the file holds|is not a plain array of numbers|wants to run code")


def test_a_pickle_whose_tables_share_their_numbers_is_read(model: Path) -> None:
    tensors = load_file(model / "model.safetensors")
    wanted = bertkit.load(model).embed("the cat")
    (model / "model.safetensors").unlink()
    whole = torch.cat([x.flatten() for x in tensors.values()])
    parts = dict(zip(tensors, whole.split([x.numel() for x in tensors.values()]), strict=True))
    views = {name: parts[name].view(x.shape) for name, x in tensors.items()}
    torch.save(views | {"copy": views["embeddings.word_embeddings.weight"]}, model / "pytorch_model.bin")
    assert (bertkit.load(model).embed("the cat") == wanted).all()


INDEXES = {
    "not JSON": (b"{", "is not JSON"),
    "a list": (b"[]", "holds a list"),
    "no map": (b"{}", "has no weight_map"),
    "numbers": (b'{"weight_map": {"a": 3}}', "has no weight_map from tensor to file"),
    "upwards": (b'{"weight_map": {"a": "../secret.safetensors"}}', "'../secret.safetensors', which is not beside it"),
    "absolute": (b'{"weight_map": {"a": "/etc/passwd"}}', "'/etc/passwd', which is not beside it"),
    "half a character": (b'{"weight_map": {"a": "\\ud800.safetensors"}}', "which is not beside it"),
    "upwards only": (b'{"weight_map": {"a": ".."}}', "'..', which is not beside it"),
    "missing shard": (b'{"weight_map": {"a": "model-00001-of-00002.safetensors"}}', "not beside it"),
    "wrong shard": (
        b'{"weight_map": {"a": "part.safetensors"}}',
        "says that part.safetensors holds a, but it does not",
    ),
    "deep": (b"[" * 100_000, "is not JSON"),
}


@pytest.mark.parametrize("case", INDEXES)
def test_hostile_indexes(case: str, model: Path) -> None:
    (model / "model.safetensors").rename(model / "part.safetensors")
    text, message = INDEXES[case]
    (model / "model.safetensors.index.json").write_bytes(text)
    refused(model, message)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b"null", b'{"model_type": ["bert"]}'])
def test_hostile_configs(text: bytes, model: Path) -> None:
    (model / "config.json").write_bytes(text)
    refused(model, "config.json")


def test_missing_files_are_named(model: Path) -> None:
    (model / "model.safetensors").rename(model / "weights.safetensors")
    refused(model, r"has no weights \(model.safetensors or pytorch_model.bin\): model holds .*weights.safetensors")
    (model / "config.json").unlink()
    refused(model, "config.json is missing")


def test_weights_of_another_model_are_named(model: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    good = load_file(model / "model.safetensors")

    def rewritten(change: dict[str, torch.Tensor], drop: str = "") -> None:
        from safetensors.torch import save_file

        save_file({name: x for name, x in (good | change).items() if name != drop}, model / "model.safetensors")

    rewritten({}, drop="encoder.layer.1.output.dense.weight")
    refused(model, "lacks bert.encoder.layer.1.output.dense.weight")
    rewritten({"pooler.dense.bias": torch.zeros(64)})
    refused(model, r"pooler.dense.bias is \[64\], but .*config.json makes it \[128\]")
    rewritten({"encoder.layer.0.attention.self.query.weight": torch.zeros(128, 128, dtype=torch.int8)})
    refused(model, "holds torch.int8 numbers, not weights")
    rewritten({"pooler.dense.weight": good["pooler.dense.weight"].to(torch.float8_e4m3fn)})
    refused(model, "holds torch.float8_e4m3fn numbers, not weights, and there is no")
    rewritten({"encoder.layer.0.attention.self.quer.weight": torch.zeros(1)})
    refused(model, "no part of bert is called bert.encoder.layer.0.attention.self.quer.weight")
    rewritten({"encoder.layer.16777214.output.dense.bias": torch.zeros(128)})
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2**24 - 1}))
    refused(model, "it says 16777215 layers, but the weights beside it have 3")
    (model / "config.json").write_text(json.dumps(config))
    rewritten({"ranker.layer.5.weight": torch.zeros(2)})
    assert bertkit.load(model).report.left == ("ranker",), "layers of a stranger's head are not the encoder's"
    rewritten({})
    bertkit.load(model)


def test_a_vocabulary_larger_than_the_table_is_refused(model: Path, tokenizer: Tokenizer) -> None:
    tokenizer.add_special_tokens(["[NEW]"])
    tokenizer.save_files(model)
    refused(model, "tokenizer has 28 tokens, but the embedding table only 27 rows")


def test_a_changed_artifact_is_noticed(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = bertkit.create("bert-tiny", tokenizer, seed=0).save(tmp_path / "model")
    bertkit.load(path)
    with (path / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(BertkitError, match=r"model.safetensors"):
        bertkit.load(path)


def modules(*kinds: str, folder: str = "") -> bytes:
    types = {kind: f"sentence_transformers.models.{kind}" for kind in kinds}
    return json.dumps([{"type": types[kind], "path": folder if kind == "Pooling" else ""} for kind in kinds]).encode()


MODULES = {
    "not JSON": (b"{", "is not a list of modules"),
    "numbers": (b"[1, 2]", "is not a list of modules"),
    "unknown": (modules("Transformer", "Pooling", "CNN"), "wants Transformer, Pooling, CNN; known"),
    "somebody's code": (modules("Transformer", "Pooling").replace(b"sentence_t", b"t"), "wants transformers.models.Tr"),
    "nothing": (b"[]", "is not a list of modules"),
    "no pooling": (modules("Transformer"), "wants Transformer; known"),
    "out of order": (modules("Transformer", "Normalize", "Pooling"), "wants Transformer, Normalize, Pooling"),
    "outside": (modules("Transformer", "Pooling", folder="../.."), "names a module outside its directory"),
    "missing": (modules("Transformer", "Pooling", folder="1_Pooling"), "config.json is missing"),
    "NUL": (modules("Transformer", "Pooling", folder="a\0b"), "is not a list of modules"),
    "half a character": (modules("Transformer", "Pooling", folder="\ud800"), "is not a list of modules"),
    "paths that are lists": (b'[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": []}]', "is not a"),
    "paths that are numbers": (b'[{"type": "a.Pooling", "path": 3}]', "is not a list of modules"),
    "deep": (b"[" * 100_000, "is not a list of modules"),
}


@pytest.mark.parametrize("case", MODULES)
def test_hostile_modules(case: str, model: Path) -> None:
    text, message = MODULES[case]
    (model / "modules.json").write_bytes(text)
    refused(model, message)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("1_Pooling/config.json", '{"pooling_mode": ["cls", "men"]}', "unknown pooling 'men'"),
        ("1_Pooling/config.json", '{"pooling_mode": []}', "needs pools"),
        ("1_Pooling/config.json", '{"pooling_mode_first_tokens": true}', "unknown pooling 'pooling_mode_first_tokens'"),
        ("1_Pooling/config.json", '{"include_prompt": "no"}', "include_prompt is 'no'"),
        ("1_Pooling/config.json", '{"pooling_mode": "weightedmean", "include_prompt": false}', "weightedmean without"),
        ("sentence_bert_config.json", '{"max_seq_length": "long"}', "max_seq_length is 'long'"),
        ("sentence_bert_config.json", '{"tokenizer_args": {"a": 1}}', "wants tokenizer_args"),
        ("sentence_bert_config.json", '{"transformer_task": "fill-mask"}', "wants transformer_task 'fill-mask'"),
        (
            "config_sentence_transformers.json",
            '{"default_prompt_name": "query"}',
            "unknown default_prompt_name 'query'",
        ),
        ("config_sentence_transformers.json", '{"prompts": {"query": 3}}', "prompts must be a table"),
        ("config_sentence_transformers.json", '{"truncate_dim": -64}', "truncate_dim is -64"),
        ("config_sentence_transformers.json", '{"model_type": "CrossEncoder"}', "model_type is 'CrossEncoder'"),
    ],
)
def test_ways_to_make_vectors_that_are_not_known_are_refused(file: str, text: str, message: str, model: Path) -> None:
    """Vectors that are silently others than sentence-transformers' would be worse than none."""
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (model / "modules.json").write_bytes(modules("Transformer", "Pooling", folder="1_Pooling"))
    bertkit.load(model)
    (model / file).write_text(text)
    refused(model, message)


def test_a_directory_where_a_file_should_be(model: Path) -> None:
    (model / "config.json").unlink()
    (model / "config.json").mkdir()
    refused(model, "config.json cannot be read: Is a directory")


def test_any_damage_gives_a_model_or_one_clear_error() -> None:
    """Bytes overwritten, put in, taken out, cut off anywhere in any file; `make proofs` does the long run."""
    found = damage.run(seed=-1, count=400)
    assert found["opened"] + found["refused"] == 400
    assert found["opened"] > 10
