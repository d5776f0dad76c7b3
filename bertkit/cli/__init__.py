"""The command `bertkit`: one thin file per verb, which parses, calls the library, and prints."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

from bertkit import __version__
from bertkit.cli import embed, fill, info, tokenize
from bertkit.errors import BertkitError

app = typer.Typer(
    name="bertkit",
    help="Everything BERT, from raw text to a served and explained model, on the machine you have.",
    epilog="Start with: bertkit info",
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
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    logging.basicConfig(format="bertkit: %(message)s", level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("bertkit").setLevel(logging.INFO)


for command in (info, tokenize, embed, fill):
    app.command(name=command.__name__.rsplit(".", 1)[-1], epilog=f"Example: {command.EXAMPLE}")(command.run)


def main() -> None:
    """Run the command; what a user can repair ends in one message and exit code 1."""
    try:
        app()
    except BertkitError as error:
        _fail(str(error))
    except BrokenPipeError:
        # the reader went away (| head): silence Python's own complaint at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))


def _fail(message: str) -> None:
    typer.echo(f"bertkit: error: {message}", err=True)
    sys.exit(1)
