"""The space-time page: every request to ZooKeeper, and which watch notified which process.

Time runs down, since labels are words and words run across. It is not linear: a rebalance
takes milliseconds and the rest before it seconds, so pauses are folded and dense parts are
stretched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.model.properties.verdicts import counted, seconds
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.operations import TOGETHER_US
from watchkeeper.reports.facts.selection import first_items
from watchkeeper.reports.facts.sessions import shared_processes, with_process
from watchkeeper.reports.figure import title
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page
from watchkeeper.reports.figure.palette import consumer_colours
from watchkeeper.reports.ownership.ownership import consumers
from watchkeeper.reports.spacetime.items import Item, items
from watchkeeper.reports.spacetime.swimlanes import Lane, lanes

NAME = "spacetime.html"
MOST_ITEMS = 10_000

_ENCODER = msgspec.json.Encoder(order="deterministic")


def write_spacetime_html(
    trace: Trace, folder: Path, *, from_us: int = 0, most: int = MOST_ITEMS
) -> str:
    """Write the page; return the name of the file.

    A long run has more than a page can hold: the page then shows the first `most` items from
    `from_us` on, and a sentence on the rest.
    """
    everything = items(trace)
    later = [item for item in everything if item.start_us >= from_us]
    shown, cut = first_items(
        later, most, noun=lambda item: item.noun, at_us=lambda item: item.start_us
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
        scripts=(
            "spacetime/spacetime-layout.js",
            "spacetime/spacetime-draw.js",
            "spacetime/spacetime.js",
        ),
        data=diagram_data(trace, shown),
    )
    return write(folder / NAME, content)


def diagram_data(trace: Trace, shown: Sequence[Item]) -> dict[str, Any]:
    """A diagram as the page's script reads it; lanes, events and details by their numbers."""
    colours = consumer_colours(consumers(trace))
    drawn = lanes(trace)
    processes = shared_processes(trace)
    number = {lane.name: at for at, lane in enumerate(drawn)}
    table = Table()
    return {
        "end": trace.end_us,
        "together": TOGETHER_US,
        "lanes": [_lane(lane, colours.get(lane.name, ""), processes) for lane in drawn],
        "items": [_item(item, number, table) for item in shown],
        "events": table.events,
        "details": list(table.details),
    }


class Table:
    """The events of all items, each once, and their details, equal ones once."""

    def __init__(self) -> None:
        self.events: dict[str, list[Any]] = {}
        self.details: dict[str, int] = {}

    def add(self, event: Event) -> int:
        """Take an event into the table; its number in the trace."""
        detail = _ENCODER.encode(event.detail).decode()
        at = self.details.setdefault(detail, len(self.details))
        place = "/".join(filter(None, (event.topic, event.partition)))
        row = [event.t_us, event.node, event.kind, event.session, event.zxid, place, at]
        self.events[str(event.seq)] = row
        return event.seq


def _lane(lane: Lane, colour: str, processes: Mapping[str, str]) -> dict[str, Any]:
    states = [[state.start_us, state.end_us, state.what] for state in lane.states]
    return {
        "name": with_process(lane.name, processes),
        "kind": lane.kind,
        "process": processes.get(lane.name, ""),
        "colour": colour,
        "states": states,
    }


def _item(item: Item, number: dict[str, int], table: Table) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "for": item.category,
        "label": item.label,
        "node": number.get(item.node, -1),
        "server": number.get(item.server, -1),
        "from": item.start_us,
        "to": item.end_us,
        "at": item.at_server_us,
        "tone": item.tone,
        "events": [table.add(event) for event in item.events],
    }
