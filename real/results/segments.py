"""Results and places in segments, as a search index keeps them: the place is in the segment.

Steps are gathered and written together. What is gathered when the process ends is lost,
results and places alike, and its messages are read again. When a store is opened, segments
are merged if there are many.

One process at a time may have a folder. Within it any thread may store; whoever does not know
how far the others have come is refused.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from model.asks import Partition
from model.clients.results import Kept, PlaceOf, StoreResult
from real.problems import EnvironmentProblem
from real.result_segments import Segment, Step, merged, read, segment, swept, torn, written
from real.storage import FileStorage

RESULTS_TOGETHER = 1_000
MOST_SEGMENTS = 8
"""If there are more when a store is opened, they are merged."""


class BrokenResults(Exception):
    """Segments that do not belong together, or of which one in the middle is missing."""

    def __init__(self, folder: str, name: str, step: Step, place: int | None) -> None:
        super().__init__(
            f"{folder}/{name}: it goes on at {step.expected} of {step.partition} for "
            f"{step.group}, and the segments before it end at {place}; bring back the one that "
            "is missing or torn, or begin with an empty folder"
        )


class SegmentResults:
    """A store of results in the segments of one folder."""

    def __init__(
        self,
        folder: Path | str,
        *,
        together: int = RESULTS_TOGETHER,
        most_segments: int = MOST_SEGMENTS,
    ) -> None:
        """A segment is written when so many results, or as many steps, are `together`."""
        self._storage = FileStorage(Path(folder))
        self._descriptor = _locked(self._storage.root)
        self._lock = Lock()
        self.together = together
        self._places: dict[tuple[str, Partition], int] = {}
        self._gathered: list[Step] = []
        self._weight = 0
        self._segments: dict[Segment, int] = self._storage.run(swept())
        try:
            steps = list(self._steps_of_all())
        except BrokenResults:
            self._let_go()
            raise
        if len(self._segments) > most_segments:
            whole = self._storage.run(merged(list(self._segments), steps))
            self._segments = {whole: self._size_of(whole)}

    def _steps_of_all(self) -> Iterator[Step]:
        """Every step there is in a segment, if each goes on where those before it end."""
        for one in self._segments:
            for step in self._steps_of(one):
                key = (step.group, step.partition)
                if self._places.get(key) != step.expected:
                    place = self._places.get(key)
                    raise BrokenResults(self._storage.root, one.name, step, place)
                self._places[key] = step.place
                yield step

    def _steps_of(self, one: Segment) -> tuple[Step, ...]:
        steps = self._storage.run(read(one, self._segments[one]))
        assert steps is not None, "it was whole when this store was opened"
        return steps

    def _size_of(self, one: Segment) -> int:
        return (Path(self._storage.root) / one.name).stat().st_size

    @property
    def torn(self) -> tuple[str, ...]:
        """Segments that were found torn, then or earlier, and set aside."""
        return self._storage.run(torn())

    # --- the store ---------------------------------------------------------------------

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where a group stands, with what is gathered."""
        with self._lock:
            return self._places.get((ask.group, ask.partition))

    def store(self, ask: StoreResult) -> bool:
        """Gather a result with its place, unless somebody else has come further."""
        key = (ask.group, ask.partition)
        with self._lock:
            if self._places.get(key) != ask.expected:
                return False
            step = Step(ask.group, ask.partition, ask.expected, ask.place, ask.results)
            self._gathered.append(step)
            self._places[key] = ask.place
            self._weight += max(len(ask.results), 1)
            if self._weight >= self.together:
                self._flush()
            return True

    def flush(self) -> None:
        """Write what is gathered: it outlives the host from now on."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if not self._gathered:
            return
        number = max((one.last for one in self._segments), default=0) + 1
        one = segment(number, number)
        self._storage.run(written(one, self._gathered))
        self._segments[one] = self._size_of(one)
        self._gathered, self._weight = [], 0

    def results_of(self, group: str) -> Iterator[Kept]:
        """The results of a group, those that are gathered last."""
        with self._lock:
            parts = [*map(self._steps_of, self._segments), tuple(self._gathered)]
        for step in (step for part in parts for step in part if step.group == group):
            for body in step.results:
                yield Kept(step.partition, step.place, body)

    def close(self) -> None:
        """Write what is gathered, and let go of the folder."""
        self.flush()
        self._let_go()

    def _let_go(self) -> None:
        self._storage.close()
        os.close(self._descriptor)


def _locked(root: str) -> int:
    """Have a folder for oneself for as long as this process lives, or the descriptor."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise EnvironmentProblem(
            f"another process keeps its results in {root}; end that one, or choose another folder"
        ) from None
    return descriptor
