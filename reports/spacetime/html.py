"""The space-time page: every request to ZooKeeper, and which watch notified which process.

Time runs down, since labels are words and words run across. It is not linear: a rebalance
takes milliseconds and the rest before it seconds, so pauses are folded and dense parts are
stretched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from watchkeeper.model.properties.verdicts import counted, seconds
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.operations import TOGETHER_US
from watchkeeper.reports.facts.selection import nearest_items
from watchkeeper.reports.facts.sessions import shared_processes, with_process
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import BEGINNINGS, ENDS
from watchkeeper.reports.figure import title
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page
from watchkeeper.reports.figure.palette import consumer_colours
from watchkeeper.reports.ownership.ownership import board, consumers
from watchkeeper.reports.spacetime.columns import encoded
from watchkeeper.reports.spacetime.items import Item, items
from watchkeeper.reports.spacetime.swimlanes import Lane, lanes

NAME = "spacetime.html"
MOST_ITEMS = 30_000
"""With the events that they are made of, about 8 MB."""
PARTS = ("-data", "-layout", "-draw", "-time", "-print", "")
SCRIPTS = tuple(f"spacetime/spacetime{part}.js" for part in PARTS)


def write_spacetime_html(
    trace: Trace, folder: Path, *, from_us: int = 0, most: int = MOST_ITEMS
) -> str:
    """Write the page; return the name of the file.

    A page holds `most` items. Of a longer run it has those nearest to a violation or an entry of
    the timeline, and a sentence on the rest; none begins before `from_us`.
    """
    everything = items(trace)
    later = [item for item in everything if item.start_us >= from_us]
    breaches = breach_spans(trace)
    shown, cut = nearest_items(
        later,
        most,
        moments_us=sorted({*(span.start_us for span in breaches), *_entries_us(trace)}),
        noun=lambda item: item.noun,
        at_us=lambda item: item.start_us,
    )
    notes = [cut]
    if len(later) < len(everything):
        missing = counted(len(everything) - len(later), "item")
        notes.insert(0, f"{missing} before {seconds(from_us)} are not drawn.")
    content = page(
        title.title(trace.header),
        title.subtitle(trace.header),
        "space and time",
        lines=[f"{counted(len(everything), 'item')} of {counted(len(trace), 'event')}."],
        banner=" ".join(filter(None, notes)),
        scripts=SCRIPTS,
        data=diagram_data(trace, shown) | {"breaches": [span.first_seq for span in breaches]},
    )
    return write(folder / NAME, content)


def _entries_us(trace: Trace) -> Iterator[int]:
    """Yield when each entry of the timeline begins and ends."""
    for event in trace.of_kind(*BEGINNINGS, *ENDS):
        yield event.t_us


def breach_spans(trace: Trace) -> list[Span]:
    """Return the breaches of ownership, the first one first."""
    found = [breach.span for row in board(trace).rows for breach in row.breaches]
    return sorted(found, key=lambda span: span.first_seq)


def diagram_data(trace: Trace, shown: Sequence[Item]) -> dict[str, Any]:
    """A diagram as the page's script reads it; lanes, words and details by their numbers."""
    colours = consumer_colours(consumers(trace))
    drawn = lanes(trace)
    processes = shared_processes(trace)
    number = {lane.name: at for at, lane in enumerate(drawn)}
    return {
        "end": trace.end_us,
        "together": TOGETHER_US,
        "lanes": [_lane(lane, colours.get(lane.name, ""), processes) for lane in drawn],
        **encoded(shown, number),
    }


def _lane(lane: Lane, colour: str, processes: Mapping[str, str]) -> dict[str, Any]:
    states = [[state.start_us, state.end_us, state.what] for state in lane.states]
    return {
        "name": with_process(lane.name, processes),
        "kind": lane.kind,
        "process": processes.get(lane.name, ""),
        "colour": colour,
        "states": states,
    }
