"""What came of a sweep, as text, as JSON, and as the files of its folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from model.sweeps import CellSum, Example, Quantiles, Share, Way, short_name
from model.verdicts import counted, duration
from watchkeeper import folder
from watchkeeper.endings import USAGE, Stop
from watchkeeper.printing import plain_table, show_table
from watchkeeper.sweeping import Swept, command_of

SUMMARY = "summary.json"
MOST_ROWS = 8
"""Of a table with a row a cell; more cells are printed as a map."""
MOST_DIFFERING = 5
REPORT = "please report it with the first command that shows it"


# --- as JSON ---------------------------------------------------------------------------


def to_json(swept: Swept) -> dict[str, Any]:
    """What `--json` prints, but for the files."""
    plan, found = swept.planned, swept.sum
    smallest = {one.way: one.to_json() for one in swept.smallest}
    return {
        "scenario": plan.scenario.name,
        "about": " ".join(plan.scenario.about.split()),
        "seeds": [plan.grid.seeds.start, plan.grid.seeds.stop],
        "variants": list(plan.variants),
        "set": {path: list(values) for path, values in plan.axes},
        **({"profile": plan.profile.to_json()} if plan.profile else {}),
        "runs": found.runs,
        "verdicts": {
            verdict: found.counted(verdict)
            for verdict in ("holds", "violated", "unknown", "failed")
        },
        "met": {
            answer: found.met(answer) for answer in ("as expected", "not as expected", "open")
        },
        "violated": _share(Share(found.counted("violated"), found.runs)),
        "cells": [_cell(swept, one) for one in found.cells],
        "failures": [
            {**_way(swept, one), "smallest": smallest.get(one.name)} for one in found.ways
        ],
        "unknown": [_way(swept, one) for one in found.doubts],
        "determinism": {
            "repeated": found.repeated,
            "differing": [_example(swept, one) for one in swept.differing],
        },
        "canary": swept.canary,
        "traces": swept.traces,
        "seconds": round(found.seconds, 3),
        "runner": {"name": swept.choice.name, "why": swept.choice.why},
        "command": command_of(plan),
    }


def _share(share: Share) -> dict[str, Any]:
    low, high = share.interval
    return {
        "number": share.number,
        "per_1000": round(share.density, 3),
        "interval": [round(low, 3), round(high, 3)],
    }


def _cell(swept: Swept, one: CellSum) -> dict[str, Any]:
    first = Example(one.number, swept.planned.grid.seeds.start, "")
    return {
        "scenario": one.scenario,
        "variant": one.variant,
        "parameters": dict(one.parameters),
        "runs": one.runs,
        "verdicts": dict(one.verdicts),
        "met": dict(one.met),
        "violated": _share(one.violated),
        "time_to_rest_us": _quantiles(one.time_to_rest_us),
        "reads": _quantiles(one.reads),
        "moves": _quantiles(one.moves),
        "command": swept.planned.command(first),
    }


def _quantiles(one: Quantiles | None) -> dict[str, int] | None:
    return None if one is None else {name: getattr(one, name) for name in one.__slots__}


def _way(swept: Swept, way: Way) -> dict[str, Any]:
    return {
        "name": way.name,
        "signature": way.signature,
        "properties": list(way.violated),
        **_share(way.share),
        "cells": list(way.cells),
        "first": _example(swept, way.first),
    }


def _example(swept: Swept, example: Example) -> dict[str, Any]:
    return {
        "run_id": example.run_id,
        "seed": example.seed,
        "command": swept.planned.command(example),
    }


# --- files -----------------------------------------------------------------------------


def write(swept: Swept, said: dict[str, Any]) -> list[str]:
    """Write summary and page; the paths of what there is to look at."""
    from reports.sweep_html import write_sweep_html

    home = swept.planned.request.out
    try:
        folder.write_json(home / SUMMARY, said)
        page = write_sweep_html(said, home)
    except OSError as error:
        raise Stop(
            USAGE,
            f"the summary cannot be written to {home}: {error.strerror or error}; the results "
            "are kept, and the same command goes on when that is mended",
        ) from None
    return [str(home / name) for name in (page, SUMMARY, "runs", "traces")]


# --- as text ---------------------------------------------------------------------------


def report(swept: Swept, to: Console, files: list[str]) -> None:
    """Print what came of a sweep."""
    _headline(swept, to)
    if len(swept.sum.cells) > MOST_ROWS and swept.planned.axes:
        _maps(swept, to)
    else:
        _cells_table(swept, to)
        to.print()
    for way in swept.sum.ways:
        _tell_way(swept, way, to)
    failed = swept.sum.counted("failed")
    if failed:
        to.print(f"{counted(failed, 'run')} ended in an error; that is a defect: {REPORT}")
        to.print()
    for way in swept.sum.doubts:
        to.print(Text.assemble((f"{way.share.number:,} unknown", "yellow"), f": {way.signature}"))
        _line(to, "again", swept.planned.command(way.first))
        to.print()
    _determinism(swept, to)
    _line(to, "canary", f"{swept.canary}: caught, as it has to be; it is not counted")
    _line(to, "again", command_of(swept.planned))
    _line(to, "files", files[0])
    for name in files[1:]:
        to.print(f"         {name}", soft_wrap=True)


def _line(to: Console, what: str, said: str) -> None:
    to.print(Text.assemble((f"{what:9}", "dim"), said), soft_wrap=True)


def _headline(swept: Swept, to: Console) -> None:
    plan, found = swept.planned, swept.sum
    verdicts = [
        f"{found.counted(verdict):,} {word}"
        for verdict, word in (
            ("violated", "violated"),
            ("unknown", "unknown"),
            ("failed", "ended in an error"),
        )
        if found.counted(verdict)
    ]
    style = "bold red" if found.counted("violated") else "yellow" if verdicts else "green"
    many = f"{len(plan.grid.cells)} x {len(plan.grid.seeds):,} runs"
    line = Text.assemble(
        (plan.scenario.name, "bold"),
        f", {', '.join(plan.variants)}, {many}: ",
        (", ".join(verdicts) or "all hold", style),
    )
    for answer, colour in (("as expected", "green"), ("not as expected", "bold red")):
        if found.met(answer):
            line.append(f"; {found.met(answer):,} {answer}", colour)
    to.print(line, soft_wrap=True)


def _cells_table(swept: Swept, to: Console) -> None:
    names = {path: short_name(path) for path, _ in swept.planned.axes}
    rare = [verdict for verdict in ("unknown", "failed") if swept.sum.counted(verdict)]
    verdicts = ("holds", "violated", *rare)
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
    for one in swept.sum.cells:
        counts = [one.verdicts.get(verdict, 0) for verdict in verdicts]
        table.add_row(
            *(one.parameters[path] for path in names),
            one.variant,
            *(f"{count:,}" if count else "-" for count in counts),
            per_1000(one.violated.density),
            interval(one.violated),
            _rest(one.time_to_rest_us),
        )
    show_table(table, to)


def _maps(swept: Swept, to: Console) -> None:
    """How many of 1,000 runs are violated: a map a variant, the last of the values across."""
    *others, (across, values) = swept.planned.axes
    for variant in swept.planned.variants:
        table = plain_table(*(short_name(path) for path, _ in others), *values)
        rows: dict[tuple[str, ...], dict[str, str]] = {}
        for one in swept.sum.cells:
            if one.variant == variant:
                key = tuple(one.parameters[path] for path, _ in others)
                rows.setdefault(key, {})[one.parameters[across]] = _density(one)
        for key, row in rows.items():
            table.add_row(*key, *(row[value] for value in values))
        said = f"{variant}, violated of 1,000 runs, by {short_name(across)}"
        to.print(Text(said, "bold"), soft_wrap=True)
        show_table(table, to)
        to.print()
    none = Share(0, len(swept.planned.grid.seeds))
    to.print(f"- stands for none of {none.runs:,} runs: {interval(none)} of 1,000", style="dim")
    to.print()


def _density(one: CellSum) -> str:
    """How often a cell is violated, and whether something is left open there."""
    said = per_1000(one.violated.density) if one.violated.number else "-"
    left_open = one.verdicts.get("unknown", 0) + one.verdicts.get("failed", 0)
    return f"{said} ({left_open:,} open)" if left_open else said


def interval(share: Share) -> str:
    """An interval, per 1,000."""
    low, high = share.interval
    return f"{per_1000(low)} to {per_1000(high)}"


def per_1000(density: float) -> str:
    """A density with as many digits as say something."""
    return (
        f"{int(density + 0.5):,}"
        if density >= 100 or density == int(density)
        else f"{density:.2g}"
    )


def _rest(one: Quantiles | None) -> str:
    """The median time to rest and the longest."""
    if one is None:
        return "-"
    return f"{duration(one.median)}, {duration(one.most)}"


def _tell_way(swept: Swept, way: Way, to: Console) -> None:
    """One way of failing: how often, how to see it, and the smallest scenario that does."""
    runs = counted(way.share.number, "run")
    where = "" if len(swept.sum.cells) == 1 else f" in {counted(len(way.cells), 'cell')}"
    often = f"{per_1000(way.share.density)} of 1,000 ({interval(way.share)})"
    to.print(
        Text.assemble((f"{runs}{where}", "bold red"), f", {often}: {way.signature}"),
        soft_wrap=True,
    )
    _line(to, "first", swept.planned.command(way.first))
    for one in swept.smallest:
        if one.way == way.name:
            cut = "" if one.complete else ", cut short"
            _line(to, "smallest", f"{one.command}  (found in {one.runs} runs{cut})")
    to.print()


def _determinism(swept: Swept, to: Console) -> None:
    if not swept.differing:
        said = counted(swept.sum.repeated, "run")
        _line(to, "twice", f"{said} were run twice and came out the same")
        return
    number = len(swept.differing)
    said = f"{counted(number, 'run')} came out differently when run again; see where with"
    to.print(Text.assemble((f"{'twice':9}", "dim"), (said, "bold red")), soft_wrap=True)
    for example in _first(swept.differing):
        to.print(f"         {swept.planned.command(example)} --check-determinism", soft_wrap=True)


def _first(examples: Sequence[Example]) -> Sequence[Example]:
    return examples[:MOST_DIFFERING]
