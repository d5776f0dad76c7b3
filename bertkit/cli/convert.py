"""`bertkit convert`: a model in another format, checked against its source before it is kept."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts as to_text

EXAMPLE = "bertkit convert minilm minilm-tf --to tf"


class Target(StrEnum):
    """The formats there are."""

    HF = "hf"
    TF = "tf"
    SENTENCE = "sentence-transformers"


NEXT = {
    Target.HF: "transformers.{architecture}.from_pretrained({path!r}), or bertkit info {path}",
    Target.TF: "tf.train.load_checkpoint({checkpoint!r}), or bertkit info {path}",
    Target.SENTENCE: "sentence_transformers.SentenceTransformer({path!r}), or bertkit embed {path} 'a text'",
}


def run(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="A directory of any format, an alias such as minilm, or a name.")
    ],
    destination: Annotated[Path, typer.Argument(metavar="DST", help="The directory to write.")],
    to: Annotated[
        Target, typer.Option(help="Hugging Face, TensorFlow 1 as Google writes it, or sentence-transformers.")
    ],
    pool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For sentence-transformers: cls, mean, max, cls+mean; if not given, as now."),
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option(help="For sentence-transformers: scale vectors to length 1; if not given, as now.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the directory if bertkit wrote it.")] = False,
    as_json: Json = False,
) -> None:
    """Write a model in another format and say what was taken, left and made new.

    The result is opened again and must give its source's numbers within 1e-5; otherwise nothing is kept.
    """
    from bertkit.convert import convert, facts

    found = facts(convert(source, destination, to.value, pool, normalize, overwrite))
    if as_json:
        typer.echo(to_json(found, indent=2))
        return
    shown = found | {
        "largest_difference": f"{found['largest_difference']:.1e} (at most 1e-05 is let through)",
        "parity": [f"{what} {difference:.1e}" for what, difference in found["parity"].items()],
    }
    typer.echo(to_text(shown))
    place = {"path": str(destination), "checkpoint": str(destination / "bert_model.ckpt")}
    next = NEXT[to].format(**place, architecture=_architecture(destination))
    typer.echo(f"Next: {next}", err=True)


def _architecture(destination: Path) -> str:
    """The class of transformers that opens what was written, heads and all."""
    from bertkit.text.files import read_object

    (name,) = read_object(destination / "config.json").get("architectures", ["AutoModel"])
    return str(name)
