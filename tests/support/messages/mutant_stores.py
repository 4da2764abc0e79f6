"""A mutant of a result store, for runs in which a property has to detect it."""

from __future__ import annotations

import math
import time
from pathlib import Path

from msgspec.structs import replace

from watchkeeper.model.clients.consumer.result_store import StoreResult
from watchkeeper.real.results.of_member import DatabaseStore
from watchkeeper.real.results.sqlite import add_rows

AFTER_S = 1.0
"""How long after its first step the process stops: by then all members have joined."""


class CommitsPlacesFirst(DatabaseStore):
    """It commits the place by itself, and what was made of the messages in the next step.

    The first process of a run stops for ever between the two, until it is killed there.
    """

    stops_at = 0.0
    """The time of the stop on the clock of the process; infinite if another one has stopped."""

    def __init__(self, folder: Path, group: str) -> None:
        super().__init__(folder, group)
        self.mark = folder / "has-stopped"

    def store(self, effect: StoreResult) -> bool:
        now = time.monotonic()
        self.stops_at = self.stops_at or now + AFTER_S
        if not super().store(replace(effect, results=())):
            return False
        if now >= self.stops_at and effect.results:
            self._stop_once()
        add_rows(self.results.connection, effect)
        return True

    def _stop_once(self) -> None:
        self.stops_at = math.inf
        try:
            self.mark.touch(exist_ok=False)
        except FileExistsError:
            return
        while True:
            time.sleep(1)
