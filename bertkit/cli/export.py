"""`bertkit export`: a model as a file that other programs run, checked against it before it is kept."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts as to_text

EXAMPLE = "bertkit export minilm --to onnx --output minilm-onnx"


class Target(StrEnum):
    """The formats there are."""

    ONNX = "onnx"
    OPENVINO = "openvino"
    TORCH_EXPORT = "torch-export"


NEXT = {
    Target.ONNX: "onnxruntime.InferenceSession({file!r})",
    Target.OPENVINO: "openvino.Core().compile_model({file!r}, 'CPU')",
    Target.TORCH_EXPORT: "torch.export.load({file!r}).module()",
}


def run(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model, a sentence encoder, or a run of bertkit finetune.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The directory to write.")],
    to: Annotated[Target, typer.Option(help="ONNX, OpenVINO's two files, or a program of torch.export.")] = Target.ONNX,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Whose logits are told, or sentence for vectors; if not given, by the model."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the directory if bertkit wrote it.")] = False,
    as_json: Json = False,
) -> None:
    """Write a model as one graph: texts' ids go in, vectors or a task's logits come out, for any number and length.

    Pooling, Dense modules and scaling, or the head, are in the graph; the tokenizer lies beside it. The file is opened
    by its own runtime and must give the model's numbers within 1e-4; otherwise nothing is kept.
    """
    from bertkit.export.export import COSINE, TOLERANCE, export
    from bertkit.export.exported import FORMATS

    def say(what: str) -> None:
        typer.echo(f"bertkit: {what}", err=True)

    made = export(model, output, to.value, head, overwrite, say)
    if as_json:
        typer.echo(to_json(made.told(), indent=2))
        return
    sheet, check = made.sheet, made.check
    asked = f"cosine of {COSINE:g} at least" if sheet.precision == "int8" else f"{TOLERANCE:g} at most"
    shown = {
        "output": str(output),
        "head": sheet.head,
        "inputs": [f"{name} [B, L]" for name in sheet.inputs],
        "outputs": [f"{one.name} [{', '.join(map(str, one.axes))}]" for one in sheet.outputs],
        "limit": f"{sheet.limit} tokens",
        **({"written before each text": repr(sheet.prompt)} if sheet.prompt else {}),
        "precision": sheet.precision,
        "largest_difference": f"{check.largest:.1e} over {check.rows} rows ({asked})",
    }
    typer.echo(to_text(shown))
    file = str(output / FORMATS[to.value].file)
    typer.echo(f"Next: {NEXT[to].format(file=file)}, or bertkit parity {model} {output}", err=True)
