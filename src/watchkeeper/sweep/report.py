"""The results of a sweep, as text, as JSON, and as the files of its folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from watchkeeper.api import folder
from watchkeeper.api.tables import LIMIT_STYLE, plain_table, show_table
from watchkeeper.console.exit import Stop, cannot_write
from watchkeeper.console.signals import INTERRUPTED
from watchkeeper.model.audit.retry_budget import PatienceWarning, warnings_of
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, Verdict, counted, duration
from watchkeeper.model.sweep_summary import (
    ANSWERS,
    AS_EXPECTED,
    MOST_WARNINGS,
    NOT_AS_EXPECTED,
    CellSummary,
    Example,
    FailureBucket,
    Quantiles,
    Share,
    short_name,
)
from watchkeeper.sweep.sweep import Swept

SUMMARY = "summary.json"
HOLDS, VIOLATED, UNKNOWN = (verdict.value for verdict in Verdict)
FAILED = "failed"
"""Of a run that ended in an error."""
WORDS = (HOLDS, VIOLATED, KNOWN_LIMIT, UNKNOWN, FAILED)
"""What a run of a sweep may come to."""
MOST_ROWS = 8
"""Of a table with a row a cell; more cells are printed as a map."""
MOST_DIFFERING = 5
LABEL = 12
"""The width of the labels before commands and files."""
DETERMINISM = "determinism"
REPORT = "please report it with the first command that shows it"


# --- as JSON ---------------------------------------------------------------------------


def to_json(swept: Swept) -> dict[str, Any]:
    """Return the value that `--json` prints, without the files."""
    plan, found = swept.planned, swept.sum
    smallest = {example.way: example.to_json() for example in swept.smallest}
    return {
        "scenario": plan.scenario.name,
        "about": " ".join(plan.scenario.about.split()),
        "seeds": [plan.grid.seeds.start, plan.grid.seeds.stop],
        "variants": list(plan.variants),
        "set": {path: list(values) for path, values in plan.axes},
        **({"profile": plan.profile.to_json()} if plan.profile else {}),
        "runs": found.runs,
        "verdicts": {word: found.shown(word) for word in WORDS},
        "met": {answer: found.met(answer) for answer in ANSWERS},
        "violated": _share(Share(found.shown(VIOLATED), found.runs)),
        "cells": [_cell(swept, cell) for cell in found.cells],
        "failures": [
            {**_way(swept, way), "smallest": smallest.get(way.name)} for way in found.ways
        ],
        "unknown": [_way(swept, way) for way in found.doubts],
        "determinism": {
            "repeated": found.repeated,
            "differing": [_example(swept, example) for example in swept.differing],
        },
        "self_test": swept.self_test,
        "traces": swept.traces,
        "seconds": round(found.seconds, 3),
        "runner": {"name": swept.choice.name, "why": swept.choice.why},
        "warnings": [asdict(one) for one in warnings(swept)],
        "command": swept.command,
    }


def _share(share: Share) -> dict[str, Any]:
    low, high = share.interval
    return {
        "number": share.number,
        "per_1000": round(share.density, 3),
        "interval": [round(low, 3), round(high, 3)],
    }


def _cell(swept: Swept, cell: CellSummary) -> dict[str, Any]:
    first = Example(cell.number, swept.planned.grid.seeds.start, "")
    return {
        "scenario": cell.scenario,
        "variant": cell.variant,
        "mix": list(cell.mix),
        "parameters": dict(cell.parameters),
        "runs": cell.runs,
        "verdicts": cell.words,
        "met": dict(cell.met),
        "known_limit": cell.limit or None,
        "violated": _share(cell.violated),
        "time_to_rest_us": _quantiles(cell.time_to_rest_us),
        "reads": _quantiles(cell.reads),
        "moves": _quantiles(cell.moves),
        "command": swept.planned.command(first),
    }


def _quantiles(quantiles: Quantiles | None) -> dict[str, int] | None:
    return (
        None
        if quantiles is None
        else {name: getattr(quantiles, name) for name in quantiles.__slots__}
    )


def _way(swept: Swept, way: FailureBucket) -> dict[str, Any]:
    return {
        "name": way.name,
        "signature": way.signature,
        **_share(way.share),
        "cells": list(way.cells),
        "known_limits": _limits(swept, way),
        "first": _example(swept, way.first),
    }


def _example(swept: Swept, example: Example) -> dict[str, Any]:
    return {
        "run_id": example.run_id,
        "seed": example.seed,
        "command": swept.planned.command(example),
    }


# --- files -----------------------------------------------------------------------------


def write(swept: Swept, summary: dict[str, Any]) -> list[str]:
    """Write summary and page, and return the paths of the results."""
    from watchkeeper.reports.sweep.html import write_sweep_html

    home = swept.planned.request.out
    advice = "the results are kept, and the same command continues from there"
    try:
        folder.write_json(home / SUMMARY, summary)
        page = write_sweep_html(summary, home)
    except Stop as stop:
        raise Stop(stop.code, f"{stop}; {advice}") from None
    except OSError as error:
        raise cannot_write(home, error, advice) from None
    return [str(home / name) for name in (page, SUMMARY, "runs", "traces")]


# --- as text ---------------------------------------------------------------------------


def report(swept: Swept, to: Console, files: list[str]) -> None:
    """Print the results of a sweep."""
    _headline(swept, to)
    if len(swept.sum.cells) > MOST_ROWS and swept.planned.axes:
        _maps(swept, to)
    else:
        _cells_table(swept, to)
        to.print()
    for way in swept.sum.ways:
        _tell_way(swept, way, to)
    failed = swept.sum.shown(FAILED)
    if failed:
        to.print(f"{counted(failed, 'run')} ended in an error; that is a defect: {REPORT}")
        to.print()
    for way in swept.sum.doubts:
        to.print(Text.assemble((f"{way.share.number:,} unknown", "yellow"), f": {way.signature}"))
        _line(to, "reproduce", swept.planned.command(way.first))
        to.print()
    _tell_warnings(warnings(swept), to)
    _determinism(swept, to)
    _line(to, "self-test", f"{swept.self_test}: violated, as expected; it is not counted")
    _line(to, "reproduce", swept.command)
    _line(to, "files", files[0])
    for name in files[1:]:
        to.print(f"{'':{LABEL}}{name}", soft_wrap=True)


def interrupted_text(swept: Swept) -> str:
    """Return what an interrupt has left open: all runs are known, smaller scenarios are not."""
    return (
        f"{INTERRUPTED}: the report has all {counted(swept.sum.runs, 'run')}, but the search for "
        f"smaller scenarios is not over\ncontinue with: {swept.command}"
    )


def _line(to: Console, label: str, text: str) -> None:
    to.print(Text.assemble((f"{label:{LABEL}}", "dim"), text), soft_wrap=True)


def _headline(swept: Swept, to: Console) -> None:
    plan, found = swept.planned, swept.sum
    violated = found.shown(VIOLATED)
    numbers = {
        VIOLATED: violated,
        f"at a {KNOWN_LIMIT}": found.shown(KNOWN_LIMIT),
        UNKNOWN: found.shown(UNKNOWN),
        "ended in an error": found.shown(FAILED),
    }
    verdicts = [f"{number:,} {word}" for word, number in numbers.items() if number]
    style = "bold red" if violated else "yellow" if verdicts else "green"
    many = f"{len(plan.grid.cells)} x {len(plan.grid.seeds):,} runs"
    line = Text.assemble(
        (plan.scenario.name, "bold"),
        f", {', '.join(_variants(found.cells))}, {many}: ",
        (", ".join(verdicts) or "all hold", style),
    )
    for answer, colour in ((AS_EXPECTED, "green"), (NOT_AS_EXPECTED, "bold red")):
        if found.met(answer):
            line.append(f"; {found.met(answer):,} {answer}", colour)
    to.print(line, soft_wrap=True)


def _variants(cells: Iterable[CellSummary]) -> list[str]:
    """The variants of some cells in words, each once."""
    return list(dict.fromkeys(cell.variants for cell in cells))


def _cells_table(swept: Swept, to: Console) -> None:
    names = {path: short_name(path) for path, _ in swept.planned.axes}
    rare = [word for word in (KNOWN_LIMIT, UNKNOWN, FAILED) if swept.sum.shown(word)]
    verdicts = (HOLDS, VIOLATED, *rare)
    table = plain_table(
        *names.values(),
        "variant",
        *verdicts,
        "per 1,000",
        "95 % interval",
        "at rest after, at most",
    )
    for column in table.columns[-3:]:
        column.no_wrap = True
    for cell in swept.sum.cells:
        counts = [cell.words.get(verdict, 0) for verdict in verdicts]
        table.add_row(
            *(cell.parameters[path] for path in names),
            cell.variants,
            *(f"{count:,}" if count else "-" for count in counts),
            per_1000(cell.violated.density),
            interval(cell.violated),
            _rest(cell.time_to_rest_us),
        )
    show_table(table, to)


def _maps(swept: Swept, to: Console) -> None:
    """Print how many of 1,000 runs are violated: a map a variant, the last field across."""
    *others, (across, values) = swept.planned.axes
    for variant in swept.planned.variants:
        table = plain_table(*(short_name(path) for path, _ in others), *values)
        rows: dict[tuple[str, ...], dict[str, str]] = {}
        for cell in swept.sum.cells:
            if cell.variant == variant:
                key = tuple(cell.parameters[path] for path, _ in others)
                rows.setdefault(key, {})[cell.parameters[across]] = _density(cell)
        for key, row in rows.items():
            table.add_row(*key, *(row[value] for value in values))
        cells = [cell for cell in swept.sum.cells if cell.variant == variant]
        message = (
            f"{', '.join(_variants(cells))}, violated of 1,000 runs, by {short_name(across)}"
        )
        to.print(Text(message, "bold"), soft_wrap=True)
        show_table(table, to)
        to.print()
    none = Share(0, len(swept.planned.grid.seeds))
    to.print(f"- means none of {none.runs:,} runs: {interval(none)} of 1,000", style="dim")
    to.print()


def _density(cell: CellSummary) -> str:
    """Return how often a cell is violated, and how many of its runs are neither that nor hold."""
    message = per_1000(cell.violated.density) if cell.violated.number else "-"
    left_open = cell.words.get(UNKNOWN, 0) + cell.words.get(FAILED, 0)
    others = {f"at a {KNOWN_LIMIT}": cell.words.get(KNOWN_LIMIT, 0), "open": left_open}
    said = [f"{number:,} {word}" for word, number in others.items() if number]
    return f"{message} ({', '.join(said)})" if said else message


def interval(share: Share) -> str:
    """Return a confidence interval, per 1,000."""
    low, high = share.interval
    return f"{per_1000(low)} to {per_1000(high)}"


def per_1000(density: float) -> str:
    """Return a density with its significant digits."""
    return (
        f"{int(density + 0.5):,}"
        if density >= 100 or density == int(density)
        else f"{density:.2g}"
    )


def _rest(quantiles: Quantiles | None) -> str:
    """Return the median time to rest and the longest."""
    if quantiles is None:
        return "-"
    return f"{duration(quantiles.median)}, {duration(quantiles.most)}"


def _tell_way(swept: Swept, way: FailureBucket, to: Console) -> None:
    """Print a failure signature: how often, how to see it, and the smallest such scenario."""
    runs = counted(way.share.number, "run")
    where = "" if len(swept.sum.cells) == 1 else f" in {counted(len(way.cells), 'cell')}"
    often = f"{per_1000(way.share.density)} in 1,000 runs ({interval(way.share)})"
    cells = [swept.sum.cells[cell] for cell in way.cells]
    style = "bold red" if any(cell.violated.number for cell in cells) else LIMIT_STYLE
    to.print(
        Text.assemble((f"{runs}{where}", style), f", {often}: {way.signature}"),
        soft_wrap=True,
    )
    for variant, limit in _limits(swept, way).items():
        _line(to, KNOWN_LIMIT, f"of {variant}: {limit}")
    _line(to, "first", swept.planned.command(way.first))
    for example in swept.smallest:
        if example.way == way.name:
            cut = "" if example.complete else "; the time was over before it was the smallest"
            _line(to, "smallest", f"{example.command}  (found in {example.runs} runs{cut})")
    to.print()


def _limits(swept: Swept, way: FailureBucket) -> dict[str, str]:
    """The variants for which a failure is a known limit, each with the reason."""
    cells = (swept.sum.cells[cell] for cell in way.cells)
    return {cell.variant: cell.limit for cell in cells if cell.met.get(KNOWN_LIMIT)}


def warnings(swept: Swept) -> tuple[PatienceWarning, ...]:
    """Return the warnings on the settings of all cells, each once."""
    cells = swept.planned.grid.cells
    return tuple(dict.fromkeys(warning for cell in cells for warning in warnings_of(cell.plan)))


def _tell_warnings(found: Sequence[PatienceWarning], to: Console) -> None:
    """Print the first warnings, and how many more the summary has."""
    for warning in found[:MOST_WARNINGS]:
        _line(to, "warning", str(warning))
    if len(found) > MOST_WARNINGS:
        _line(to, "", f"and {len(found) - MOST_WARNINGS:,} more, in {SUMMARY}")


def _determinism(swept: Swept, to: Console) -> None:
    if not swept.differing:
        repeated = counted(swept.sum.repeated, "run")
        _line(to, DETERMINISM, f"{repeated} were repeated and came out the same")
        return
    number = len(swept.differing)
    text = f"{counted(number, 'run')} came out differently when repeated; see where with"
    to.print(Text.assemble((f"{DETERMINISM:{LABEL}}", "dim"), (text, "bold red")), soft_wrap=True)
    for example in _first(swept.differing):
        command = swept.planned.command(example)
        to.print(f"{'':{LABEL}}{command} --check-determinism", soft_wrap=True)


def _first(examples: Sequence[Example]) -> Sequence[Example]:
    return examples[:MOST_DIFFERING]
