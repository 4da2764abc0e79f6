"""Pictures and pages, made from a trace or a counterexample and nothing else.

    from reports import write_all

    write_all(trace, folder)   # -> names of the files written

  ownership.png, ownership.html   who fetched each partition and when; splits, zombies, gaps
  spacetime.html                  who asked ZooKeeper for what, and which watch told whom
  connections.png                 who fetches from which broker at the end
  messages.png, messages.html     only where brokers store messages: throughput, cache hits,
                                  bytes at risk, lag, latency

    from reports.story_html import write_story_html

    write_story_html(story, folder)

  counterexample.html             each step of a counterexample, and how all stood after it

Where to begin reading: `spans` and `intervals` say who fetched what, where two did, where
nobody did; `sessions`, `timeline` and `operations` put together the rest of what is shown.
All of that is pure and knows nothing of pictures. `ownership` and `items` make of it what
one picture shows, `selection` leaves out what is too much and says so, `zoom` finds what is
too short to be seen. Only then come the modules that draw: `*_png` on a `sheet`, with
matplotlib, and `*_html` into a `page`, whose scripts and style stand beside them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model.trace import Trace
from reports.message_path import follows_messages

WRITERS = {
    "write_ownership_png": "reports.ownership_png",
    "write_ownership_html": "reports.ownership_html",
    "write_spacetime_html": "reports.spacetime_html",
    "write_connections_png": "reports.connections_png",
    "write_messages_png": "reports.messages_png",
    "write_messages_html": "reports.messages_html",
}
"""Writer -> its module. They are imported when they are first used: matplotlib takes long."""
OF_MESSAGES = ("write_messages_png", "write_messages_html")
"""Those that have something to show only where a trace tells of messages."""

__all__ = [
    "write_all",
    "write_connections_png",
    "write_messages_html",
    "write_messages_png",
    "write_ownership_html",
    "write_ownership_png",
    "write_spacetime_html",
]

if TYPE_CHECKING:
    from reports.connections_png import write_connections_png
    from reports.messages_html import write_messages_html
    from reports.messages_png import write_messages_png
    from reports.ownership_html import write_ownership_html
    from reports.ownership_png import write_ownership_png
    from reports.spacetime_html import write_spacetime_html


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
    has_messages = follows_messages(trace)
    return [one for one in WRITERS.items() if has_messages or one[0] not in OF_MESSAGES]
