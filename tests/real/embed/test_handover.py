"""What an application owns while its callbacks run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from watchkeeper.model.actor.effects import Fetch, Partition
from watchkeeper.real.embed.callbacks import Callbacks
from watchkeeper.real.embed.handover import RebalanceListener

LONGEST_S = 60.0
FIRST, SECOND = Partition("clicks", "0-0"), Partition("clicks", "0-1")


class SlowApplication:
    """An application whose callbacks wait until they may go on."""

    def __init__(self) -> None:
        self.called, self.may_go_on = Event(), Event()
        self.callbacks = Callbacks("billing/0", logging.getLogger(__name__), LONGEST_S)
        self.listener = RebalanceListener(self.callbacks, self.wait, self.wait)
        self.callbacks.start()

    def wait(self, given: Any) -> None:
        self.called.set()
        assert self.may_go_on.wait(LONGEST_S)

    def fetch(self, *partitions: Partition) -> None:
        fetches = (Fetch(partition, 0, 0, "b0:9092") for partition in partitions)
        self.listener.fetch_exactly(fetches, lambda: None)


@pytest.fixture
def slow() -> Iterator[SlowApplication]:
    made = SlowApplication()
    yield made
    made.may_go_on.set()
    assert made.callbacks.stop(LONGEST_S)


def test_every_owned_partition_takes_an_offset(slow: SlowApplication) -> None:
    """The second partition is claimed, and its callback waits behind that of the first."""
    slow.fetch(FIRST)
    assert slow.called.wait(LONGEST_S)
    slow.fetch(FIRST, SECOND)

    assert slow.listener.owned == (FIRST,)
    slow.listener.store_offsets(dict.fromkeys(slow.listener.owned, 7))
    assert dict(slow.listener.known_positions())[FIRST] == 7


def test_a_partition_that_is_about_to_be_released_is_not_owned(slow: SlowApplication) -> None:
    """Its callback may still store what it has read."""
    slow.fetch(FIRST)
    assert slow.called.wait(LONGEST_S)
    slow.fetch()

    assert slow.listener.owned == ()
    slow.listener.store_offsets({FIRST: 7})
