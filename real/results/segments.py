"""Results and positions in segments, like a search index that stores its position.

Steps are collected and written together. What was not written when the process ends is lost,
results and positions alike, and its messages are read again. Opening a store merges its segments
if there are many.

One process at a time may own a folder. Within it any thread may store; a store with an outdated
position is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.result_store import (
    ReadPosition,
    StoredResult,
    StoreResult,
)
from watchkeeper.real.results.segment_file import (
    Segment,
    Step,
    clean_up,
    merge_segments,
    read_segment,
    segment,
    torn_segments,
    write_segment,
)
from watchkeeper.real.storage.file_storage import FileStorage
from watchkeeper.real.storage.folder_lock import lock_folder

RESULTS_TOGETHER = 1_000
MOST_SEGMENTS = 8
"""More segments are merged when a store is opened."""


class BrokenResults(Exception):
    """Segments that do not fit together, for instance because one in the middle is missing."""

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
        """A segment is written after `together` results, or as many steps without results."""
        self._storage = FileStorage(Path(folder))
        self._descriptor = lock_folder(self._storage.root, "another process keeps its results in")
        self._lock = Lock()
        self.together = together
        self._places: dict[tuple[str, Partition], int] = {}
        self._gathered: list[Step] = []
        self._weight = 0
        self._segments: dict[Segment, int] = self._storage.run(clean_up())
        try:
            steps = list(self._steps_of_all())
        except BrokenResults:
            self._release()
            raise
        if len(self._segments) > most_segments:
            merged = self._storage.run(merge_segments(list(self._segments), steps))
            self._segments = {merged: self._size_of(merged)}

    def _steps_of_all(self) -> Iterator[Step]:
        """Every step of all segments; raises BrokenResults if there is a gap."""
        for written in self._segments:
            for step in self._steps_of(written):
                key = (step.group, step.partition)
                if self._places.get(key) != step.expected:
                    place = self._places.get(key)
                    raise BrokenResults(self._storage.root, written.name, step, place)
                self._places[key] = step.place
                yield step

    def _steps_of(self, written: Segment) -> tuple[Step, ...]:
        steps = self._storage.run(read_segment(written, self._segments[written]))
        assert steps is not None, "it was whole when this store was opened"
        return steps

    def _size_of(self, written: Segment) -> int:
        return (Path(self._storage.root) / written.name).stat().st_size

    @property
    def torn(self) -> tuple[str, ...]:
        """The torn segments that were found and renamed."""
        return self._storage.run(torn_segments())

    # --- the store ---------------------------------------------------------------------

    def position_of(self, effect: ReadPosition) -> int | None:
        """The position of a group, including what was not written yet."""
        with self._lock:
            return self._places.get((effect.group, effect.partition))

    def store(self, effect: StoreResult) -> bool:
        """Add results with their position; False if the expected position is outdated."""
        key = (effect.group, effect.partition)
        with self._lock:
            if self._places.get(key) != effect.expected:
                return False
            step = Step(
                effect.group, effect.partition, effect.expected, effect.position, effect.results
            )
            self._gathered.append(step)
            self._places[key] = effect.position
            self._weight += max(len(effect.results), 1)
            if self._weight >= self.together:
                self._flush()
            return True

    def flush(self) -> None:
        """Write what was collected; it then survives the end of the host."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if not self._gathered:
            return
        number = max((part.last for part in self._segments), default=0) + 1
        written = segment(number, number)
        self._storage.run(write_segment(written, self._gathered))
        self._segments[written] = self._size_of(written)
        self._gathered, self._weight = [], 0

    def results_of(self, group: str) -> Iterator[StoredResult]:
        """The results of a group, the unwritten ones last."""
        with self._lock:
            parts = [*map(self._steps_of, self._segments), tuple(self._gathered)]
        for step in (step for part in parts for step in part if step.group == group):
            for body in step.results:
                yield StoredResult(step.partition, step.place, body)

    def close(self) -> None:
        """Write what was collected, and release the folder."""
        self.flush()
        self._release()

    def _release(self) -> None:
        self._storage.close()
        os.close(self._descriptor)
