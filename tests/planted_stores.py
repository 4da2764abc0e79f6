"""Stores that break their word, for runs in which a judge has to notice."""

from __future__ import annotations

import math
import time

from msgspec.structs import replace

from model.clients.results import StoreResult
from real.member_results import InDatabase
from real.sqlite_results import add_rows

AFTER_S, BETWEEN_S = 1.0, 3.0
"""So long after its first step, for so long and only once: whoever is killed a little later is
killed between the two, and whoever goes on keeps up with what is sent."""


class CommitsPlacesFirst(InDatabase):
    """It commits the place by itself, and what was made of the messages in the next step."""

    waits_at = 0.0
    """By the clock of its process, from its first step on; never again once it has waited."""

    def store(self, ask: StoreResult) -> bool:
        now = time.monotonic()
        self.waits_at = self.waits_at or now + AFTER_S
        if not super().store(replace(ask, results=())):
            return False
        if now >= self.waits_at:
            self.waits_at = math.inf
            time.sleep(BETWEEN_S)
        add_rows(self.results.connection, ask)
        return True
