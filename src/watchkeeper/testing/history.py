"""The trace of all requests, in the format of the traces of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from watchkeeper.model.ensemble.words import VERSION
from watchkeeper.model.trace.trace import Event, Header, Row, Trace

TRACE = "trace.jsonl"
WORLD = "python"


class History:
    """What clients have requested until now, what they were answered, and what struck them.

    The moments are those of the servers; `model.ensemble.history` says what is in it.
    """

    def __init__(self, name: str, rows: list[Row]) -> None:
        header = Header(name, "zookeeper", WORLD, 0, {"zookeeper": VERSION})
        self.trace = Trace(header, rows)
        """The events as a `watchkeeper.model.trace.trace.Trace`."""

    def __len__(self) -> int:
        return len(self.trace)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.trace)

    def of_kind(self, *kinds: str) -> list[Event]:
        """The events of these kinds, as `request` or `watch fired`."""
        return list(self.trace.of_kind(*kinds))

    def write(self, folder: Path | str) -> tuple[Path, ...]:
        """Write the trace and the space-time page into a folder; returns the two files."""
        from watchkeeper.reports.spacetime.html import write_spacetime_html

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        with (place / TRACE).open("wb") as file:
            file.writelines(self.trace.lines())
        return place / TRACE, place / write_spacetime_html(self.trace, place)
