"""The page of ownership: the picture, to be looked into."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import Entry
from watchkeeper.reports.figure import palette, title
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page
from watchkeeper.reports.ownership.ownership import Board, Row, board, shortened_board

NAME = "ownership.html"

MOST_ROWS = 2_000
MOST_MARKS = 60_000
MOST_STRIPS = 200
SCRIPTS = tuple(f"ownership/ownership{part}.js" for part in ("-draw", "", "-find", "-play"))


def write_ownership_html(trace: Trace, folder: Path) -> str:
    """Write the page; the name of the file."""
    shown = shortened_board(
        board(trace), most_rows=MOST_ROWS, most_marks=MOST_MARKS, most_strips=MOST_STRIPS
    )
    content = page(
        title.title(shown.header),
        title.subtitle(shown.header),
        "ownership",
        lines=[shown.summary],
        banner=shown.banner,
        scripts=SCRIPTS,
        data=board_data(shown),
    )
    return write(folder / NAME, content)


def board_data(shown: Board) -> dict[str, Any]:
    """A board as the page's script reads it; members are referred to by their number."""
    names = list(shown.colours)
    number = {name: at for at, name in enumerate(names)}
    return {
        "end": shown.end_us,
        "words": asdict(shown.wording),
        "closer": shown.closer,
        "stripes": {"at": palette.STRIPES_AT, "high": palette.STRIPE, "looks": palette.LOOKS},
        "members": [
            [name, colour, palette.text_on(colour), shown.stripes[name]]
            for name, colour in shown.colours.items()
        ],
        "rows": [_row(row, number) for row in shown.rows],
        "strips": [
            [
                number[name],
                [_span(span, span.what) for span in spans],
                shown.label_of(name),
            ]
            for name, spans in shown.strips.items()
        ],
        "entries": [_entry(entry) for entry in shown.entries if entry.kind != EventKind.LOAD],
    }


def _row(row: Row, number: dict[str, int]) -> dict[str, Any]:
    return {
        "place": list(row.place),
        "fetched": [_span(span, number[span.what]) for span in row.fetched],
        "held": [_span(span, number[span.what]) for span in row.held],
        "breaches": [
            _span(
                breach.span,
                [number[name] for name in breach.members],
                [number[name] for name in breach.zombies],
                breach.is_split,
            )
            for breach in row.breaches
        ],
        "gaps": [_span(gap) for gap in row.gaps],
    }


def _span(span: Span, *what: Any) -> list[Any]:
    """A span: from, to, its first and its last event, and its values."""
    return [span.start_us, span.end_us, span.first_seq, span.last_seq, *what]


def _entry(entry: Entry) -> list[Any]:
    return _span(entry.span, entry.kind, entry.label, entry.lasts)
