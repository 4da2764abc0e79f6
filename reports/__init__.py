"""Pictures and pages of a run or a counterexample, made from the trace alone.

    from watchkeeper.reports import write_all

    write_all(trace, folder)   # -> names of the files written

  ownership.png, ownership.html   who fetched each partition and when; splits, zombies, gaps; of a
                                  test in virtual time, who was in each section and when
  spacetime.html                  every request to ZooKeeper, and which watch notified whom
  connections.png                 who fetches from which broker at the end
  leaders.png                     if brokers elect a controller: who leads each partition, with
                                  which ISR, and what is committed
  reassignment.png                if partitions were moved: each step of each move
  messages.png, messages.html     if brokers store messages: throughput, cache hits, bytes at
                                  risk, lag, latency

    from watchkeeper.reports.explorer.html import write_counterexample_html, write_explorer_html

    write_explorer_html(browsed, graph, folder)
    write_counterexample_html(counterexample, folder)

  explore.html                    the states of a search, step by step
  counterexample.html             the same page, opened at the end of a path: each step of a
                                  counterexample, and what else could have come

    from watchkeeper.reports.replicas.html import write_replicas_html

    write_replicas_html(counterexample, folder)

  counterexample.html             the same for the replicas of one partition

Reading order: `facts/` derives from a trace what is shown (`spans` and `intervals` first: who
fetched what, splits and gaps) and knows nothing of pictures. `figure/` has what all pictures
share: a canvas, a page, colours, panels. Each picture then has its folder: `ownership/`,
`spacetime/`, `connections/`, `leaders/`, `reassignment/`, `messages/`, `explorer/`,
`replicas/`, `sweep/`, `analysis/`, with its layout, `png` (matplotlib) and `html` (with scripts
and styles beside it).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.messages.message_path import follows_messages

WRITERS = {
    "write_ownership_png": "watchkeeper.reports.ownership.png",
    "write_ownership_html": "watchkeeper.reports.ownership.html",
    "write_spacetime_html": "watchkeeper.reports.spacetime.html",
    "write_connections_png": "watchkeeper.reports.connections.png",
    "write_leaders_png": "watchkeeper.reports.leaders.png",
    "write_reassignment_png": "watchkeeper.reports.reassignment.png",
    "write_messages_png": "watchkeeper.reports.messages.png",
    "write_messages_html": "watchkeeper.reports.messages.html",
}
"""Writer -> its module. They are imported when they are first used: matplotlib takes long."""
OF_MESSAGES = ("write_messages_png", "write_messages_html")
"""Writers for traces with messages only."""
OF_OWNERSHIP = ("write_ownership_png", "write_ownership_html")
"""Writers for traces in which something has an owner: all but some of virtual time."""
VIRTUAL = "virtual"

__all__ = [
    "write_all",
    "write_connections_png",
    "write_leaders_png",
    "write_messages_html",
    "write_messages_png",
    "write_ownership_html",
    "write_ownership_png",
    "write_reassignment_png",
    "write_spacetime_html",
]

if TYPE_CHECKING:
    from watchkeeper.reports.connections.png import write_connections_png
    from watchkeeper.reports.leaders.png import write_leaders_png
    from watchkeeper.reports.messages.html import write_messages_html
    from watchkeeper.reports.messages.png import write_messages_png
    from watchkeeper.reports.ownership.html import write_ownership_html
    from watchkeeper.reports.ownership.png import write_ownership_png
    from watchkeeper.reports.reassignment.png import write_reassignment_png
    from watchkeeper.reports.spacetime.html import write_spacetime_html


def __getattr__(name: str) -> Any:
    if name not in WRITERS:
        raise AttributeError(f"module 'reports' has no attribute {name!r}")
    return getattr(import_module(WRITERS[name]), name)


def write_all(trace: Trace, folder: Path) -> list[str]:
    """Write every picture and page of a run into a folder; the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        getattr(import_module(module), writer)(trace, folder)
        for writer, module in _writers(trace)
    ]


def pictures_of(trace: Trace) -> list[str]:
    """The names of the files that `write_all` writes for a trace."""
    return [writer.removeprefix("write_").replace("_", ".") for writer, _ in _writers(trace)]


def _writers(trace: Trace) -> list[tuple[str, str]]:
    from watchkeeper.reports.facts.control_plane.reassignments import moves  # as the writers

    left_out = set() if follows_messages(trace) else {*OF_MESSAGES}
    if not moves(trace):
        left_out.add("write_reassignment_png")
    if not trace.has(EventKind.FAILOVER_COMPLETED):
        left_out.add("write_leaders_png")
    elif not trace.has(EventKind.FETCHING):
        left_out.update(("write_ownership_png", "write_ownership_html", "write_connections_png"))
    if trace.header.world == VIRTUAL and not trace.has(EventKind.FETCHING):
        left_out.add("write_connections_png")
        if not trace.has(EventKind.ENTERED):
            left_out.update(OF_OWNERSHIP)
    return [entry for entry in WRITERS.items() if entry[0] not in left_out]
