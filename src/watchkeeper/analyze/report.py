"""What came of an analysis, as text, as JSON, and as the last files of its folder."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from model.verdicts import counted, seconds
from pipeline.analysis.agreement import TRACE, Difference
from pipeline.analysis.clusters import Cluster
from pipeline.analysis.store import write_summary
from pipeline.analysis.turning import Inevitable
from reports.analysis_html import write_analysis_html
from watchkeeper.analysis_tables import MOST_ROWS, measure_tables
from watchkeeper.analyzing import Done
from watchkeeper.printing import plain_table, show_table
from watchkeeper.sweep_printing import interval, per_1000

FORMAT = 1


# --- as JSON ---------------------------------------------------------------------------


def to_json(done: Done) -> dict[str, Any]:
    """What `--json` prints."""
    found = done.found
    return {
        "watchkeeper": "analysis",
        "format": FORMAT,
        "runs": found.runs,
        "events": found.events,
        "agreed": found.agreed,
        "not_computed": found.alone,
        "differences": [asdict(one) for one in found.differences],
        "without_plan": {one.name: one.why_no_plan for one in done.gathered.runs if not one.plan},
        "without_trace": [str(one) for one in done.gathered.without_trace],
        "judged": found.judged,
        "failures": [_cluster(one, done) for one in found.clusters],
        "measures": found.measured,
        "coverage": found.coverage,
        "inevitable": None if done.inevitable is None else _inevitable(done.inevitable),
    }


def _inevitable(one: Inevitable) -> dict[str, Any]:
    return {
        "run": one.run,
        "violates": list(one.violates),
        "points": [
            {
                "events": events,
                "at_us": at_us,
                "fail": share.number,
                "of": share.runs,
                "interval": [round(end, 3) for end in share.interval],
            }
            for events, at_us, share in one.points
        ],
        "decided": one.decided,
    }


def _cluster(one: Cluster, done: Done) -> dict[str, Any]:
    low, high = one.share.interval
    least, most = one.runs_to_find
    return {
        "signature": one.signature,
        "number": one.share.number,
        "of": one.share.runs,
        "per_1000": round(one.share.density, 3),
        "interval": [round(low, 3), round(high, 3)],
        "runs_to_find": [least, most],
        "smallest": one.smallest,
        "events": one.smallest_events,
        "command": _command(one, done),
    }


def _command(one: Cluster, done: Done) -> str:
    """The command that runs the smallest example again."""
    known = {run.name: run.command for run in done.gathered.runs}
    return known.get(one.smallest, "")


def write(done: Done, home: Path) -> None:
    """Write the page, and the summary last."""
    said = to_json(done)
    write_analysis_html(said, home)
    write_summary(home, said)


# --- as text ---------------------------------------------------------------------------


def report(done: Done, to: Console) -> None:
    """Print what came of it."""
    _headline(done, to)
    _agreement(done, to)
    _failures(done, to)
    measure_tables(done.found.measured, to)
    _coverage(done, to)
    if done.inevitable is not None:
        _curve(done.inevitable, to)
    to.print(Text.assemble((f"{'files':9}", "dim"), str(done.request.out)), soft_wrap=True)


def _headline(done: Done, to: Console) -> None:
    found = done.found
    number = len(found.differences)
    said, style = ("both agree", "green") if found.agreed else ("nothing to compare", "yellow")
    if number:
        said, style = counted(number, "difference"), "bold red"
    what = f"{counted(found.runs, 'run')}, {counted(found.events, 'event')}: "
    to.print(Text.assemble((what, "bold"), (said, style)), soft_wrap=True)
    to.print()


def _agreement(done: Done, to: Console) -> None:
    """What was computed a second time, and what was not."""
    found = done.found
    wrong = Counter(one.property.partition(":")[0] for one in found.differences)
    table = plain_table("property", "agree", "differ", "not computed a second time")
    for name in sorted({*found.agreed, *found.alone, *wrong}):
        numbers = (found.agreed.get(name, 0), wrong[name], found.alone.get(name, 0))
        table.add_row(name, *(f"{one:,}" if one else "-" for one in numbers))
    show_table(table, to)
    to.print()
    whys = Counter(one.why_no_plan for one in done.gathered.runs if one.plan is None)
    for why, number in whys.most_common(MOST_ROWS):
        said = f"of {counted(number, 'run')} only what needs no plan was computed: {why}"
        to.print(said, style="dim", soft_wrap=True)
    without = done.gathered.without_trace
    if without:
        said = f"{counted(len(without), 'folder')} with a verdict and no trace: {without[0]}"
        to.print(
            f"{said}{' and others' if len(without) > 1 else ''}", style="dim", soft_wrap=True
        )


def _failures(done: Done, to: Console) -> None:
    for one in done.found.clusters[:MOST_ROWS]:
        often = f"{per_1000(one.share.density)} of 1,000 ({interval(one.share)})"
        runs = f"{one.share.number:,} of {counted(one.share.runs, 'run')}"
        to.print(Text.assemble((runs, "bold red"), f", {often}: {one.signature}"), soft_wrap=True)
        least, most = one.runs_to_find
        seen = f"{least:,} to {most:,}" if most is not None else f"{least:,} or more"
        _line(to, "found", f"by {seen} seeds, with a certainty of 95 %")
        command = _command(one, done)
        shown = f"{one.smallest}, {counted(one.smallest_events, 'event')}"
        _line(to, "smallest", f"{command or shown}")
        to.print()


def _line(to: Console, what: str, said: str) -> None:
    to.print(Text.assemble((f"{what:9}", "dim"), said), soft_wrap=True)


def _coverage(done: Done, to: Console) -> None:
    """Which steps each fault has interrupted, and how many it never did."""
    faults: dict[str, list[dict[str, Any]]] = {}
    for row in done.found.coverage:
        faults.setdefault(row["fault"], []).append(row)
    table = plain_table("fault", "interrupted", "never")
    for fault, rows in faults.items():
        seen = [f"{row['step']} {row['times']:,}" for row in rows if row["times"]]
        table.add_row(
            fault, ", ".join(seen) or "-", f"{len(rows) - len(seen)} of {len(rows)} steps"
        )
    if faults:
        show_table(table, to)
        to.print()


def _curve(one: Inevitable, to: Console) -> None:
    """How much of a failure was decided by when."""
    to.print(Text(f"{one.run}, {', '.join(one.violates)}", "bold"), soft_wrap=True)
    table = plain_table(
        "events that stay", "until", "of 1,000 branches fail", "95 % interval", ""
    )
    for at, (events, at_us, share) in enumerate(one.points):
        mark = "inevitable from here on" if at == one.decided else ""
        table.add_row(
            *(f"{events:,}", seconds(at_us), per_1000(share.density), interval(share), mark)
        )
    show_table(table, to)
    to.print()


def sentence(one: Difference) -> str:
    """A difference, in a sentence that says where to look."""
    if one.property == TRACE:
        return (
            f"{one.run}: its trace is not the one that was judged (sha256 {one.computed[:12]}, "
            f"where the verdict says {one.said[:12]}); run it again"
        )
    where = ""
    if one.event is not None:
        at = "" if one.at_us is None else f", at {seconds(one.at_us)}"
        where = f" by event {one.event}{at}"
    return (
        f"{one.run}: {one.property} was judged {one.said} ({one.evidence}), and comes out as "
        f"{one.computed}{where} from the trace; one of the two is wrong"
    )
