"""What the pictures of ownership show, worked out from a trace and nothing else.

A *board* is the whole picture as values: rows of partitions with who fetched them, the
overlaps and gaps among them, a strip for each consumer, and the entries of the timeline.
One module draws it as an image, another as a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from model.asks import Partition
from model.trace import Header, Trace
from model.verdicts import duration
from reports.intervals import Overlap, Place, fetched, gaps, hosted, last_event, overlaps
from reports.labels import counted, natural
from reports.palette import consumer_colours
from reports.selection import Chosen, Rated, choose_rows, rows_banner
from reports.sessions import process_states, zombie_spans
from reports.spans import Span
from reports.timeline import Entry, entries

SORTS = ("with an overlap", "with a gap of its own", "that lie as others do")


@dataclass(frozen=True, slots=True)
class Row:
    """One partition of one group."""

    place: Place
    fetched: tuple[Span, ...]
    overlaps: tuple[Overlap, ...]
    gaps: tuple[Span, ...]
