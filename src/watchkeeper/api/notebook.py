"""A run as HTML for a notebook: no script, no picture, and nothing from the network."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from watchkeeper.api.synopsis import synopsis
from watchkeeper.api.tables import folded
from watchkeeper.model.plan.bounds import variants_in_words
from watchkeeper.model.properties.verdicts import Verdict, counted, seconds, verdict_word
from watchkeeper.reports.figure.title import WORLDS

if TYPE_CHECKING:
    from watchkeeper.api.result import Result

COLOURS = {Verdict.HOLDS: "#1a7f37", Verdict.VIOLATED: "#cf222e", Verdict.UNKNOWN: "#9a6700"}


def result_html(result: Result) -> str:
    """Return a run as HTML."""
    return "\n".join(["<div>", *_parts(result), "</div>"])


def _parts(result: Result) -> Iterator[str]:
    world = WORLDS[result.trace.header.world]
    who = variants_in_words(result.plan)
    head = f"{result.scenario.name}, {who}, {world}, seed {result.seed}: "
    yield f"<p><b>{escape(head)}{_verdict(result.verdict, result.known_limit)}</b></p>"
    for text in filter(None, (result.known_limit, synopsis(result.trace))):
        yield f"<p>{escape(text)}</p>"
    found = folded(result.findings)
    if found.shown:
        yield "<table><tr><th>property</th><th>verdict</th><th>evidence</th></tr>"
        for finding in found.shown:
            name, evidence = escape(finding.claim.name), escape(finding.evidence)
            cells = (name, _verdict(finding.verdict), evidence)
            row = "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells)
            yield f"<tr>{row}</tr>"
        yield "</table>"
    for chain in result.why:
        lines = "".join(
            f"<li>{escape(seconds(line.t_us))}: {escape(line.text)}</li>" for line in chain.lines
        )
        yield f"<p>why {escape(chain.property)}:</p><ul>{lines}</ul>"
    if found.held:
        names = ", ".join(finding.claim.name for finding in found.held)
        title = f"{counted(len(found.held), 'property', 'properties')} hold"
        yield f"<details><summary>{title}</summary>{escape(names)}</details>"
    yield f"<p><code>{escape(result.command)}</code></p>"


def _verdict(verdict: Verdict, limit: str = "") -> str:
    return f'<span style="color:{COLOURS[verdict]}">{escape(verdict_word(verdict, limit))}</span>'
