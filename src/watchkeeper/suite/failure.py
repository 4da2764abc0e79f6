"""What a failing test shows of its run: at most twelve lines, and a folder with its pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from watchkeeper.api import folder
from watchkeeper.api.run_files import fill
from watchkeeper.api.synopsis import synopsis
from watchkeeper.console.exit import Stop
from watchkeeper.model.plan.bounds import variants_in_words
from watchkeeper.model.properties.verdicts import Finding, Verdict, verdict_word
from watchkeeper.scenarios import shipped
from watchkeeper.suite.smallest import smallest

if TYPE_CHECKING:
    from watchkeeper.api.result import Result

MOST_LINES = 12
SMALLEST = "smallest.yaml"
FAILED = "failed"
"""The folder of kept runs, in that of all runs."""


def chosen(runs: Sequence[Result]) -> Result:
    """Return the run to show: the first that is not as expected, or else the last."""
    wrong = (result for result in runs if result.exit_code != 0)
    return next(wrong, runs[-1])


def failure_lines(result: Result, out: Path, shrink_s: float) -> list[str]:
    """Keep a run in a folder, and say what it shows, where it is and how to run it again.

    A smaller scenario with the same failure is looked for within `shrink_s`.
    """
    home = out / FAILED / _name(result)
    variants = variants_in_words(result.plan)
    word = verdict_word(result.verdict, result.known_limit)
    lines = [f"{result.scenario.name}, {variants}, seed {result.seed}: {word}"]
    happened = synopsis(result.trace)
    lines += [happened] if happened else []
    found = _first(result)
    if found is not None:
        lines.append(f"{found.claim.name}: {found.evidence}")
        lines += _why(result, found)
    source, page = _kept(result, home)
    end = [f"again: {result.command_with(source)}", page, *_smallest(result, home, shrink_s)]
    return [*lines[: MOST_LINES - len(end)], *end]


def _smallest(result: Result, home: Path, shrink_s: float) -> Iterable[str]:
    """Write the smaller scenario beside the run, and say how to run it."""
    text = smallest(result, shrink_s)
    if text is not None and home.is_dir():
        place = home / SMALLEST
        folder.write_text(place, text)
        yield f"smallest: {result.command_with(str(place))}"


def _first(result: Result) -> Finding | None:
    """The property to show: one that is violated, or else one that is open and counts."""
    for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN):
        for finding in result.findings:
            if finding.verdict is verdict and finding.counts:
                return finding
    return None


def _why(result: Result, found: Finding) -> Iterable[str]:
    for chain in result.why:
        if chain.property == found.claim.name:
            yield from (f"  {line}" for line in chain.lines)


def _name(result: Result) -> str:
    """The name of a folder: that of the run, and what tells scenarios of one name apart."""
    digest = sha256(result.scenario.text.encode()).hexdigest()[:8]
    return f"{result.trace.header.run_id}-{digest}"


def _kept(result: Result, home: Path) -> tuple[str, str]:
    """Fill the folder of a run; the scenario to run again, and the line about the page."""
    source = result.scenario.source
    is_there = bool(source) and (Path(source).exists() or source in shipped())
    try:
        home.mkdir(parents=True, exist_ok=True)
        fill(home, result, pictures=True)
    except (Stop, OSError) as error:
        return source, f"page: none, since the run cannot be kept ({error})"
    return source if is_there else str(home / folder.SCENARIO), f"page: {home / folder.INDEX}"
