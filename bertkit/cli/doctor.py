"""`bertkit doctor`: what is well here, what is not, and what to type."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import one_line

EXAMPLE = "bertkit doctor --json"


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Check installation, threads, memory, engines, disk and models, and say how to repair what is wrong.

    The exit code is 1 if something fails; what is only missing or slow is a warning.
    """
    from bertkit.doctor import examine

    findings = examine()
    states = [finding.state for finding in findings]
    if as_json:
        typer.echo(to_json([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            typer.echo(f"{finding.state:<4}  {finding.check:<{width}}  {one_line(finding.found)}")
            if finding.repair:
                typer.echo(f"      {'':<{width}}  → {finding.repair}")
        typer.echo(f"{states.count('ok')} ok, {states.count('warn')} to look at, {states.count('fail')} failed")
    if "fail" in states:
        raise typer.Exit(1)
