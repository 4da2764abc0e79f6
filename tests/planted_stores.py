"""Stores that break their word, for runs in which a judge has to notice."""

from __future__ import annotations

import time

from msgspec.structs import replace

from model.clients.results import StoreResult
from real.member_results import InDatabase
from real.sqlite_results import add_rows

BETWEEN_S = 1.0
"""So long that whoever is killed is killed between the two."""


class CommitsPlacesFirst(InDatabase):
    """It commits the place by itself, and what was made of the messages in the next step."""

    def store(self, ask: StoreResult) -> bool:
        if not super().store(replace(ask, results=())):
            return False
        time.sleep(BETWEEN_S)
        add_rows(self.results.connection, ask)
        return True
