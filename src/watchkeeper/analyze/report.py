"""The result of an analysis as text, as JSON, and as the last files of its folder."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from watchkeeper.analyze.analyze import Done
from watchkeeper.analyze.tables import MOST_ROWS, measure_tables
from watchkeeper.api.tables import LIMIT_STYLE, plain_table, show_table
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, counted, seconds
from watchkeeper.pipeline.analysis.cross_check import TRACE, Difference
from watchkeeper.pipeline.analysis.failure_clusters import Cluster
from watchkeeper.pipeline.analysis.inevitability import Inevitable
from watchkeeper.pipeline.analysis.store import write_summary
from watchkeeper.reports.analysis.html import write_analysis_html
from watchkeeper.sweep.report import interval, per_1000

FORMAT = 1


# --- as JSON ---------------------------------------------------------------------------


def to_json(done: Done) -> dict[str, Any]:
    """Return the value that `--json` prints."""
    found = done.found
    return {
        "watchkeeper": "analysis",
        "format": FORMAT,
        "runs": found.runs,
        "events": found.events,
        "agreed": found.agreed,
        "not_computed": found.alone,
        "differences": [asdict(difference) for difference in found.differences],
        "without_plan": {run.name: run.why_no_plan for run in done.gathered.runs if not run.plan},
        "without_trace": [str(path) for path in done.gathered.without_trace],
        "judged": found.judged,
        "failures": [_cluster(cluster, done) for cluster in found.clusters],
        "measures": found.measured,
        "coverage": found.coverage,
        "inevitable": None if done.inevitable is None else _inevitable(done.inevitable),
        "command": done.request.command,
    }


def _inevitable(inevitable: Inevitable) -> dict[str, Any]:
    return {
        "run": inevitable.run,
        "violates": list(inevitable.violates),
        "points": [
            {
                "events": events,
                "at_us": at_us,
                "fail": share.number,
                "of": share.runs,
                "interval": [round(end, 3) for end in share.interval],
            }
            for events, at_us, share in inevitable.points
        ],
        "decided": inevitable.decided,
    }


def _cluster(cluster: Cluster, done: Done) -> dict[str, Any]:
    low, high = cluster.share.interval
    least, most = cluster.runs_to_find
    return {
        "signature": cluster.signature,
        "number": cluster.share.number,
        "of": cluster.share.runs,
        "per_1000": round(cluster.share.density, 3),
        "interval": [round(low, 3), round(high, 3)],
        "runs_to_find": [least, most],
        "smallest": cluster.smallest,
        "events": cluster.smallest_events,
        "known_limits": done.gathered.known_limits.get(cluster.signature, {}),
        "command": _command(cluster, done),
    }


def _command(cluster: Cluster, done: Done) -> str:
    """Return the command that reproduces the smallest example."""
    known = {run.name: run.command for run in done.gathered.runs}
    return known.get(cluster.smallest, "")


def write(done: Done, home: Path) -> None:
    """Write the page, and the summary last."""
    summary = to_json(done)
    write_analysis_html(summary, home)
    write_summary(home, summary)


# --- as text ---------------------------------------------------------------------------


def report(done: Done, to: Console) -> None:
    """Print the result."""
    _headline(done, to)
    _agreement(done, to)
    _failures(done, to)
    measure_tables(done.found.measured, to)
    _coverage(done, to)
    if done.inevitable is not None:
        _curve(done.inevitable, to)
    _line(to, "reproduce", done.request.command)
    _line(to, "files", str(done.request.out))


def _headline(done: Done, to: Console) -> None:
    found = done.found
    number = len(found.differences)
    recorded, style = (
        ("both agree", "green") if found.agreed else ("nothing to compare", "yellow")
    )
    if number:
        recorded, style = counted(number, "difference"), "bold red"
    what = f"{counted(found.runs, 'run')}, {counted(found.events, 'event')}: "
    to.print(Text.assemble((what, "bold"), (recorded, style)), soft_wrap=True)
    to.print()


def _agreement(done: Done, to: Console) -> None:
    """Print what was computed a second time, and what was not."""
    found = done.found
    wrong = Counter(difference.property.partition(":")[0] for difference in found.differences)
    table = plain_table("property", "agree", "differ", "not computed a second time")
    for name in sorted({*found.agreed, *found.alone, *wrong}):
        numbers = (found.agreed.get(name, 0), wrong[name], found.alone.get(name, 0))
        table.add_row(name, *(f"{number:,}" if number else "-" for number in numbers))
    show_table(table, to)
    to.print()
    whys = Counter(run.why_no_plan for run in done.gathered.runs if run.plan is None)
    for why, number in whys.most_common(MOST_ROWS):
        recorded = f"of {counted(number, 'run')} only what needs no plan was computed: {why}"
        to.print(recorded, style="dim", soft_wrap=True)
    without = done.gathered.without_trace
    if without:
        recorded = f"{counted(len(without), 'folder')} with a verdict and no trace: {without[0]}"
        to.print(
            f"{recorded}{' and others' if len(without) > 1 else ''}", style="dim", soft_wrap=True
        )


def _failures(done: Done, to: Console) -> None:
    for cluster in done.found.clusters[:MOST_ROWS]:
        often = f"{per_1000(cluster.share.density)} in 1,000 ({interval(cluster.share)})"
        runs = f"{cluster.share.number:,} of {counted(cluster.share.runs, 'run')}"
        to.print(
            Text.assemble((runs, "bold red"), f", {often}: {cluster.signature}"), soft_wrap=True
        )
        for variant, limit in done.gathered.known_limits.get(cluster.signature, {}).items():
            to.print(f"{KNOWN_LIMIT} of {variant}: {limit}", style=LIMIT_STYLE, soft_wrap=True)
        least, most = cluster.runs_to_find
        seen = f"{least:,} to {most:,}" if most is not None else f"{least:,} or more"
        _line(to, "found", f"by {seen} seeds, with a certainty of 95 %")
        command = _command(cluster, done)
        shown = f"{cluster.smallest}, {counted(cluster.smallest_events, 'event')}"
        _line(to, "smallest", f"{command or shown}")
        to.print()


def _line(to: Console, what: str, recorded: str) -> None:
    to.print(Text.assemble((f"{what:10}", "dim"), recorded), soft_wrap=True)


def _coverage(done: Done, to: Console) -> None:
    """Print the steps that each fault interrupted, and the number of the others."""
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


def _curve(inevitable: Inevitable, to: Console) -> None:
    """Print the share of failing branches after each event, with its interval."""
    to.print(Text(f"{inevitable.run}, {', '.join(inevitable.violates)}", "bold"), soft_wrap=True)
    table = plain_table(
        "events that stay", "until", "of 1,000 branches fail", "95 % interval", ""
    )
    for at, (events, at_us, share) in enumerate(inevitable.points):
        mark = "inevitable from here on" if at == inevitable.decided else ""
        table.add_row(
            *(f"{events:,}", seconds(at_us), per_1000(share.density), interval(share), mark)
        )
    show_table(table, to)
    to.print()


def sentence(difference: Difference) -> str:
    """A difference, in a sentence that says where to look."""
    if difference.property == TRACE:
        return (
            f"{difference.run}: its trace is not the one that was judged (sha256 "
            f"{difference.computed[:12]}, where the verdict says {difference.recorded[:12]}); "
            "run it again"
        )
    where = ""
    if difference.event is not None:
        at = "" if difference.at_us is None else f", at {seconds(difference.at_us)}"
        where = f" by event {difference.event}{at}"
    return (
        f"{difference.run}: {difference.property} was judged {difference.recorded} "
        f"({difference.evidence}), and comes out as {difference.computed}{where} from the "
        "trace; one of the two is wrong"
    )
