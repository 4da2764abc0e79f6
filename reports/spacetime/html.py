"""The page of space and time: who asked ZooKeeper for what and when, and which watch told whom.

Time runs down, since the labels of operations are words and words run across. It does not
run evenly: a rebalance takes milliseconds and the rest before it seconds, so pauses are
folded and what happens closely together is spread out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from model.trace import Event, Trace
from model.verdicts import counted, seconds
from reports import headings
from reports.files import write
from reports.items import Item, items
from reports.lanes import Lane, lanes
from reports.operations import TOGETHER_US
from reports.ownership import consumers
from reports.page import page
from reports.palette import consumer_colours
from reports.selection import first_items

NAME = "spacetime.html"
MOST_ITEMS = 10_000

_ENCODER = msgspec.json.Encoder(order="deterministic")


def write_spacetime_html(
    trace: Trace, folder: Path, *, from_us: int = 0, most: int = MOST_ITEMS
) -> str:
    """Write the page; the name of the file.

    A long run has more than a page can hold: the page then shows the first `most` items
    that begin at `from_us` or later, and says what it does not show.
    """
    everything = items(trace)
    later = [one for one in everything if one.start_us >= from_us]
    shown, cut = first_items(
        later, most, noun=lambda one: one.noun, at_us=lambda one: one.start_us
    )
    said = [cut]
    if len(later) < len(everything):
        missing = counted(len(everything) - len(later), "item")
        said.insert(0, f"{missing} before {seconds(from_us)} are not drawn.")
    content = page(
        headings.title(trace.header),
        headings.subtitle(trace.header),
        "space and time",
        lines=[f"{counted(len(everything), 'item')} of {counted(len(trace), 'event')}."],
        banner=" ".join(filter(None, said)),
        scripts=("spacetime-layout.js", "spacetime-draw.js", "spacetime.js"),
        data=diagram_data(trace, shown),
    )
    return write(folder / NAME, content)


def diagram_data(trace: Trace, shown: Sequence[Item]) -> dict[str, Any]:
    """A diagram as the page's script reads it; lanes, events and details by their numbers."""
    colours = consumer_colours(consumers(trace))
    drawn = lanes(trace)
    number = {lane.name: at for at, lane in enumerate(drawn)}
    table = Table()
    return {
        "end": trace.end_us,
        "together": TOGETHER_US,
        "lanes": [_lane(lane, colours.get(lane.name, "")) for lane in drawn],
        "items": [_item(item, number, table) for item in shown],
        "events": table.events,
        "details": list(table.details),
    }


class Table:
    """The events that items are made of, each once; and their details, equal ones once."""

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


def _lane(lane: Lane, colour: str) -> dict[str, Any]:
    states = [[one.start_us, one.end_us, one.what] for one in lane.states]
    return {"name": lane.name, "kind": lane.kind, "colour": colour, "states": states}


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
