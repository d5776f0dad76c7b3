"""Measure bertkit against its peers: `python -m bench.run [WORKLOAD …] [--quick] [--json]`.

A Markdown table for each workload, or with `--json` one object on a line of its own. What happens meanwhile, and what
makes the numbers worth less, is told on stderr.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from types import ModuleType
from typing import Any

from rich.console import Console

import bench
import bertkit
from bench import machine, peer
from bench.measure import Case, Row, Speed, Weighing, Weight, compare, weigh
from bertkit.errors import BertkitError, unknown

THREADS = 2
ROUNDS, QUICK_ROUNDS = 8, 2  # even, so that each order has its turn as often as the other
WEIGHED = 3
"""processes whose memory is measured: it hardly varies"""
LOADED = 0.15
"""cores used by others from which on ratios are no good"""


def workloads() -> dict[str, ModuleType]:
    """Every module here that has cases, by name."""
    modules = {found.name: f"bench.{found.name}" for found in pkgutil.iter_modules(bench.__path__)}
    loaded = {name: importlib.import_module(path) for name, path in modules.items() if name != "run"}
    return {name: module for name, module in loaded.items() if hasattr(module, "cases")}


def run(
    name: str, workload: ModuleType, quick: bool, console: Console, only: str = "", rounds: int | None = None
) -> dict[str, Any]:
    """All cases of one workload whose name has `only` in it, as `--json` prints them."""
    rounds = rounds or (QUICK_ROUNDS if quick else None)
    usual = getattr(workload, "ROUNDS", ROUNDS)
    rows: list[Row | Speed | Weight] = []
    peaks = {("fp32", 1): 0.0, ("fp32", THREADS): 0.0, ("int8", THREADS): 0.0}
    loads: list[float] = []
    with console.status(f"{name}: opening") as status:
        for case in workload.cases(quick):
            if only not in case.name:
                continue
            if quick:
                case = replace(case, bars={})  # small cases are not what a bar was set for
            peaks = _peaks(peaks)
            before = machine.Usage.now()
            made = _measured(case, rounds or case.rounds or usual, status.update)
            rows += made
            for row in made:  # at once: a run that is stopped later has told something
                console.print(str(row), soft_wrap=True, highlight=False, markup=False)
            loads.append(machine.others(before, machine.Usage.now()))
            if loads[-1] > LOADED:
                console.print(
                    f"{case.name}: others used {loads[-1]:.2f} cores: ratios hold less; measure again alone",
                    soft_wrap=True,
                )
        peaks = _peaks(peaks)
    about = machine.description(THREADS) | {
        "bertkit": bertkit.__version__,
        "gemm_gflops": {str(threads): round(peaks["fp32", threads] / 1e9, 1) for threads in (1, THREADS)},
        "gemm_gops_int8": round(peaks["int8", THREADS] / 1e9, 1),
        "others_cores": round(max(loads, default=0.0), 2),
    }
    return {
        "workload": name,
        "machine": about,
        "rows": [as_json(row, peaks[row.precision, THREADS]) for row in rows if isinstance(row, Row)],
        "speeds": [speed_as_json(row) for row in rows if isinstance(row, Speed)],
        "memory": [weight_as_json(row) for row in rows if isinstance(row, Weight)],
    }


def _peaks(before: Mapping[tuple[str, int], float]) -> dict[tuple[str, int], float]:
    """The best that was ever seen in this run: a disturbed moment makes no smaller machine."""
    return {(kind, threads): max(best, machine.peak(threads, kind)) for (kind, threads), best in before.items()}


def _measured(case: Case, rounds: int, told: Callable[[str], None]) -> Sequence[Row | Speed | Weight]:
    """Contestants live for one case: twelve of them with the models of the last one would fill the machine."""
    with ExitStack() as stack:
        peers = {name: stack.enter_context(closing(peer.Peer(name, THREADS))) for name in peer.names()}
        if isinstance(case, Weighing):
            return weigh(case, peers, min(rounds - 1, WEIGHED), told)
        return compare(case, peers, rounds, told=told)


def as_json(row: Row, peak: float) -> dict[str, Any]:
    """A row with what a program may want of it.

    `share` and `peer_share` are parts of the machine's GEMM peak, `speed` and `peer_speed` amounts in a second; a row
    has those that its case knows.
    """
    told: dict[str, Any] = {"case": row.case, "peer": row.peer, "ratio": None, "spread": None}
    if row.bar:
        told |= {"bar": str(row.bar), "reached": row.reached}
    if row.ratio is None or row.spread is None or row.seconds is None or row.peer_seconds is None:
        return told | {"reason": row.reason}
    work: dict[str, Any] = {}
    if row.amount:
        done, unit = row.amount
        work |= {
            "speed": float(f"{done / row.seconds:.4g}"),
            "peer_speed": float(f"{done / row.peer_seconds:.4g}"),
            "unit": unit,
        }
    if row.flops or not row.amount:
        work |= {
            "gflops": round(row.flops / row.seconds / 1e9, 1),
            "peer_gflops": round(row.flops / row.peer_seconds / 1e9, 1),
            "share": round(row.flops / row.seconds / peak, 3),
            "peer_share": round(row.flops / row.peer_seconds / peak, 3),
        }
    if row.own_cosine is not None:
        work["own_cosine"] = row.own_cosine
    return told | {
        "ratio": round(row.ratio, 3),
        "spread": [round(end, 3) for end in row.spread],
        "milliseconds": round(row.seconds * 1e3, 3),
        "peer_milliseconds": round(row.peer_seconds * 1e3, 3),
        **work,
        "rounds": row.rounds,
        "largest_difference": row.difference,
        "smallest_cosine": row.cosine,
        "versions": dict(row.versions),
    }


def speed_as_json(row: Speed) -> dict[str, Any]:
    """A row of our own speed."""
    told: dict[str, Any] = {"case": row.case, "unit": row.unit, "speed": None, "spread": None}
    if row.bar:
        told |= {"bar": f"≥ {_amount(row.bar.ratio)} {row.unit}/s", "reached": row.reached}
    if row.speed is None or row.spread is None:
        return told | {"reason": row.reason}
    spread = [float(f"{end:.4g}") for end in row.spread]
    return told | {"speed": float(f"{row.speed:.4g}"), "spread": spread, "rounds": row.rounds}


def weight_as_json(row: Weight) -> dict[str, Any]:
    """A row of memory: `grown` is what the work took, `whole` the process with its libraries, both in megabytes."""
    told: dict[str, Any] = {"case": row.case, "peer": row.peer, "ratio": None, "spread": None}
    if row.bar:
        told |= {"bar": str(row.bar), "reached": row.reached}
    if row.ratio is None or row.spread is None:
        return told | {"reason": row.reason}
    sizes = {name: round(getattr(row, name) / 1e6, 1) for name in ("grown", "peer_grown", "whole", "peer_whole")}
    spread = [round(end, 3) for end in row.spread]
    told |= {"ratio": round(row.ratio, 3), "spread": spread, **sizes}
    return told | {"rounds": row.rounds, "versions": dict(row.versions)}


def to_markdown(result: dict[str, Any]) -> str:
    """One workload as a table with its machine above."""
    about = result["machine"]
    gemm = ", ".join(f"{value:g} on {threads}" for threads, value in about["gemm_gflops"].items())
    lines = [
        f"## {result['workload']}",
        "",
        f"{about['cpu']}, {about['cores']} cores, {about['threads']} threads used; {about['system']}, "
        f"Python {about['python']}, torch {about['torch']}, bertkit {about['bertkit']}. "
        f"GEMM peak (fp32, GFLOP/s): {gemm} threads; in int8 {about['gemm_gops_int8']:g}. "
        f"Others used at most {about['others_cores']:g} cores.",
        "",
        _headings(result["rows"]),
        "|---|---|---|---|---|---|---|---|---|",
        *(_line(row) for row in result["rows"]),
    ]
    if result["speeds"]:
        lines += ["", "| case | bertkit alone | spread | bar |", "|---|---|---|---|", *map(_speed, result["speeds"])]
    if result.get("memory"):
        headings = "| case | peer | of the peer's | spread | bertkit, MB | peer, MB | with libraries, MB | bar |"
        lines += ["", headings, "|---|---|---|---|---|---|---|---|", *map(_weight, result["memory"])]
    return "\n".join(lines)


def _headings(rows: Sequence[dict[str, Any]]) -> str:
    other = "of GEMM peak | smallest cosine"
    if any("speed" in row for row in rows):
        other = (
            "in a second, of GEMM peak | answers" if any("share" in row for row in rows) else "in a second | answers"
        )
    return f"| case | peer | ratio | spread | bertkit, ms | peer, ms | {other} | bar |"


def _line(row: dict[str, Any]) -> str:
    bar = row.get("bar", "")
    if row["ratio"] is None:
        cells = [row["case"], row["peer"], f"none: {row['reason']}", *[""] * 5, bar]
    else:
        cells = [
            row["case"],
            _peer(row),
            f"{row['ratio']:.2f}",
            "–".join(f"{end:.2f}" for end in row["spread"]),
            f"{row['milliseconds']:,.1f}",
            f"{row['peer_milliseconds']:,.1f}",
            _work(row),
            _answers(row),
            _verdict(row),
        ]
    return _cells(cells)


def _peer(row: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in row.get("versions", {}).items())
    return f"{row['peer']} ({versions})" if versions else row["peer"]


def _work(row: dict[str, Any]) -> str:
    told = []
    if "speed" in row:
        told.append(f"{_amount(row['speed'])} {row['unit']}, peer {_amount(row['peer_speed'])}")
    if "share" in row:
        told.append(f"{row['share']:.0%}, peer {row['peer_share']:.0%}")
    return "; ".join(told)


def _answers(row: dict[str, Any]) -> str:
    if row["smallest_cosine"] is None:
        return "equal"
    if "own_cosine" in row:
        return f"{row['own_cosine']:.4f}, peer {row['smallest_cosine']:.4f} (with fp32)"
    return f"within {row['largest_difference']:.0e}" if "speed" in row else f"{row['smallest_cosine']:.6f}"


def _weight(row: dict[str, Any]) -> str:
    if row["ratio"] is None:
        return _cells([row["case"], row["peer"], f"none: {row['reason']}", *[""] * 4, row.get("bar", "")])
    return _cells(
        [
            row["case"],
            _peer(row),
            f"{row['ratio']:.2f}",
            "–".join(f"{end:.2f}" for end in row["spread"]),
            f"{row['grown']:,.0f}",
            f"{row['peer_grown']:,.0f}",
            f"{row['whole']:,.0f}, peer {row['peer_whole']:,.0f}: {row['whole'] / row['peer_whole']:.2f}",
            _verdict(row),
        ]
    )


def _speed(row: dict[str, Any]) -> str:
    bar = row.get("bar", "")
    if row["speed"] is None:
        return _cells([row["case"], f"none: {row['reason']}", "", bar])
    spread = "–".join(_amount(end) for end in row["spread"])
    return _cells([row["case"], f"{_amount(row['speed'])} {row['unit']}/s", spread, _verdict(row)])


def _verdict(row: dict[str, Any]) -> str:
    return {True: f"{row.get('bar')}: reached", False: f"{row.get('bar')}: **not reached**"}.get(row.get("reached"), "")


def _amount(value: float) -> str:
    """Three digits, in millions where it has them.

    >>> _amount(12.345), _amount(5e6), _amount(987_654)
    ('12.3', '5 M', '988,000')
    """
    if value >= 1e6:
        return f"{float(f'{value / 1e6:.3g}'):,g} M"
    return f"{float(f'{value:.3g}'):,.15g}"


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0 whatever the ratios are."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description="Measure bertkit against its peers.")
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help="what to measure; all when none is named")
    parser.add_argument("--quick", action="store_true", help="two rounds of small cases: does it run? no numbers")
    parser.add_argument("--case", default="", metavar="WORDS", help="only cases with this in their name: query, minilm")
    parser.add_argument("--json", action="store_true", help="one JSON object per workload, each on its line")
    parser.add_argument("--rounds", type=int, metavar="N", help="of every case; an even number")
    given = parser.parse_args(arguments)
    console, known = Console(stderr=True), workloads()
    try:
        for name in given.names:
            if name not in known:
                raise unknown("workload", name, known)
        for name in given.names or known:
            result = run(name, known[name], given.quick, console, given.case, given.rounds)
            print(json.dumps(result, ensure_ascii=False) if given.json else to_markdown(result), flush=True)
    except BertkitError as error:
        console.print(f"error: {error}", highlight=False, markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("Stopped: a workload counts when it is whole.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
