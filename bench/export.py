"""Models as other engines read them, made by sentence-transformers at first use and kept in `.bench/models`.

A kept export is found by the content of its weights, so that a model that changes is exported anew.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from bench.peer import HOME
from bench.texts import texts
from bertkit import machine

CALIBRATION = 300
"""texts, as many as sentence-transformers takes"""
KIND, INSTRUCTIONS = ("qint8", "avx512_vnni") if "avx512_vnni" in machine.instructions() else ("quint8", "avx2")
"""what sentence-transformers' documentation advises for the processor"""
GRAPHS = {
    ("onnx", "fp32"): "onnx/model.onnx",
    ("onnx", "int8"): f"onnx/model_{KIND}_{INSTRUCTIONS}.onnx",
    ("openvino", "fp32"): "openvino/openvino_model.xml",
    ("openvino", "int8"): "openvino/openvino_model_qint8_quantized.xml",
}
"""by sentence-transformers' own names"""


def place(model: str, backend: str) -> Path:
    """Where a model's export is, or will be."""
    with (Path(model) / "model.safetensors").open("rb") as weights:
        content = hashlib.file_digest(weights, "sha256").hexdigest()[:16]
    return HOME / "models" / f"{backend}-{content}"


def opened(model: str, backend: str, options: dict[str, Any], precision: str = "fp32") -> Any:
    """A SentenceTransformer on the given backend, with options for its engine."""
    from sentence_transformers import SentenceTransformer

    from bertkit import artifact

    path, name = place(model, backend), GRAPHS[backend, precision]
    if not path.exists():
        with artifact.directory(path, "export") as temporary:
            made = SentenceTransformer(model, backend=backend)
            made.save_pretrained(str(temporary))
            _QUANTIZE[backend](temporary)
    return SentenceTransformer(str(path), backend=backend, model_kwargs={**options, "file_name": name})


def _onnx_int8(path: Path) -> None:
    from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

    made = SentenceTransformer(str(path), backend="onnx", model_kwargs={"file_name": GRAPHS["onnx", "fp32"]})
    export_dynamic_quantized_onnx_model(made, INSTRUCTIONS, str(path))


def _openvino_int8(path: Path) -> None:
    """What its export_static_quantized_openvino_model does, with texts of ours: its own come from a hub."""
    import nncf
    import openvino
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_padding()
    rows = [tokenizer.encode(text) for text in texts(CALIBRATION, seed=7)]
    given = [
        {"input_ids": [row.ids], "attention_mask": [row.attention_mask], "token_type_ids": [row.type_ids]}
        for row in rows
    ]
    graph = openvino.Core().read_model(path / GRAPHS["openvino", "fp32"])
    made = nncf.quantize(graph, nncf.Dataset(given), model_type=nncf.ModelType.TRANSFORMER, subset_size=CALIBRATION)
    openvino.save_model(made, path / GRAPHS["openvino", "int8"], compress_to_fp16=False)


_QUANTIZE = {"onnx": _onnx_int8, "openvino": _openvino_int8}


def for_fastembed(model: str, precision: str) -> Path:
    """A folder with a graph that sentence-transformers made, and the tokenizer, as fastembed wants them."""
    export = place(model, "onnx")
    if not export.exists():
        raise LookupError("it reads the graph of sentence-transformers-onnx, which is not made yet")
    path = export.with_name(f"{export.name}-fastembed-{precision}")
    if not path.exists():
        path.mkdir()
        for file in export.glob("*.json"):
            shutil.copy(file, path)
        shutil.copy(export / GRAPHS["onnx", precision], path / "model.onnx")
    return path
