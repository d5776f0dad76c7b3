"""The command `bertkit`: one thin file per verb, which parses, calls the library, and prints."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from bertkit import __version__
from bertkit.cli import (
    checkpoint,
    convert,
    corpus,
    doctor,
    embed,
    evaluate,
    export,
    fill,
    finetune,
    info,
    lengths,
    parity,
    predict,
    pretrain,
    quantize,
    report,
    score,
    tokenize,
    tune,
    vocab,
)
from bertkit.errors import BertkitError

app = typer.Typer(
    name="bertkit",
    help="Everything BERT, from raw text to a served and explained model, on the machine you have.",
    epilog="Example: bertkit embed minilm 'a text'    What there is: bertkit info",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bertkit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("bertkit: %(message)s"))
    logger = logging.getLogger("bertkit")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)


for command in (
    *(info, tokenize, lengths, embed, fill, pretrain, finetune, evaluate, predict),
    *(tune, quantize, export, parity, report, convert, doctor),
):
    app.command(name=command.__name__.rsplit(".", 1)[-1], epilog=f"Example: {command.EXAMPLE}")(command.run)

app.add_typer(vocab.app, name="vocab")
app.add_typer(corpus.app, name="corpus")
app.add_typer(checkpoint.app, name="checkpoint")
app.add_typer(score.app, name="score")


def main() -> None:
    """Run the command; what a user can repair ends in one message and exit code 1.

    Typer itself answers a closed pipe (`| head`) with silence and Ctrl-C with exit code 130.
    """
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show 猫 or … shows an escape, not a traceback
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except BertkitError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))


def _fail(message: str) -> None:
    typer.echo(f"bertkit: error: {message}", err=True)
    sys.exit(1)
