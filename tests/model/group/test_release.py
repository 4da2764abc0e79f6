"""What a hardened member keeps of partitions that it gives up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from watchkeeper.model.actor.effects import Forget, Partition
from watchkeeper.model.actor.errors import ConnectionLoss
from watchkeeper.model.group.claims import release_lost
from watchkeeper.model.group.state import Attempt, ConsumerState

KEPT, LOST = Partition("clicks", "0-0"), Partition("clicks", "0-1")


def test_a_position_is_forgotten_although_the_reply_to_its_release_is_lost() -> None:
    """Another member may own the partition by then, and read on in it."""

    async def lose_reply(operation: Any) -> Any:
        raise ConnectionLoss("/")

    state = ConsumerState(consumer_id="c", fence_version=3, owned=(KEPT, LOST))
    me: Any = SimpleNamespace(group="billing")
    attempt = Attempt(me, state, lose_reply, assigned=((KEPT, 0),), claimed=(KEPT, LOST))
    release: Any = release_lost(attempt)

    assert release.send(None) == Forget((LOST,))
    with pytest.raises(ConnectionLoss):
        release.send(None)

    assert attempt.state.owned == (KEPT, LOST)
