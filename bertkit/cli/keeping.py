"""Outputs that are kept while they grow: what commands that write one say about it, in the same words."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.runtime.ledger import Ledger
    from bertkit.text.truncate import Cut

OVERWRITE = "Replace the output if it exists, and begin anew if an interrupted one is kept."


def require_output(output: Path, suffix: str, reader: str, overwrite: bool) -> None:
    """Say at once what would otherwise be said after the model was loaded."""
    from bertkit.runtime.ledger import may_write

    if output.suffix != suffix:
        raise BertkitError(f"--output {output} must end in {suffix}, which {reader}: --output {output.stem}{suffix}")
    if not overwrite and output.is_file() and not may_write(output):
        raise BertkitError(f"--output {output} exists. Give another name, or add --overwrite to replace it")


def say_where_it_goes_on(ledger: Ledger, what: str) -> None:
    if ledger.kept.items:
        typer.echo(f"bertkit: going on after {ledger.kept.items:,} {what} that are kept in {ledger.home}", err=True)


@contextmanager
def told_when_stopped(output: Path | None, what: str, overwrite: bool) -> Iterator[None]:
    """Ctrl-C ends with a word on what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more, on the way out, could only make torch abort
        typer.echo(f"bertkit: stopped{_kept(output, what, overwrite) if output else ''}", err=True)
        raise typer.Exit(130) from None


def _kept(output: Path, what: str, overwrite: bool) -> str:
    from bertkit.runtime.ledger import kept_of, part_of

    kept = kept_of(output)
    if not kept.items:
        return "; nothing was written"
    again = "The same command without --overwrite goes on" if overwrite else "The same command goes on"
    return f"; {kept.items:,} {what} are kept in {part_of(output)}. {again}"


def counts(cut: Cut) -> dict[str, int]:
    """What was cut, as numbers to be kept."""
    return {"texts": cut.texts, "tokens": cut.tokens, "chunked": cut.chunked, "chunks": cut.chunks}


def cut_before(ledger: Ledger, limit: int) -> Cut:
    """What was cut of the texts that are done."""
    from bertkit.text.truncate import Cut

    known: dict[str, Any] = ledger.kept.more.get("cut", {})
    return Cut(limit, **known)


def tell_cut(count: int, cut: Cut) -> None:
    if cut.texts or cut.chunked:
        typer.echo(f"bertkit: {cut.among(count)}", err=True)
