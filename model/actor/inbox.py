"""Notifications that a later read makes superfluous."""

from __future__ import annotations

from collections import deque
from typing import Any

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Fired, Notification, WatchEventType
from watchkeeper.model.actor.operations import AddWatch, Exists, GetChildren, GetData, Pipelined

CHILD_EVENTS = (WatchEventType.CHILDREN,)
DATA_EVENTS = (WatchEventType.CREATED, WatchEventType.CHANGED, WatchEventType.DELETED)


def without_superseded(
    inbox: deque[Notification], effect: Any, answer: Any, known: int
) -> deque[Notification]:
    """Return the inbox after the answer to a read that has set a watch again.

    Older notifications of that watch report nothing that the read has not seen. A
    notification that arrived while a batch was under way may be newer than the read in it:
    only the first `known` ones, in the inbox when the batch was sent, are surely older.
    """
    if not inbox or type(answer) is Failure:
        return inbox
    if type(effect) is not Pipelined:
        return deque(
            notification for notification in inbox if not is_superseded(notification, effect)
        )
    read = [
        part
        for part, reply in zip(effect.operations, answer, strict=True)
        if type(reply) is not Failure
    ]
    return deque(
        notification
        for at, notification in enumerate(inbox)
        if at >= known or not any(is_superseded(notification, part) for part in read)
    )


def is_superseded(notification: Notification, effect: Any) -> bool:
    """Whether a notification is of the watch that this read sets again."""
    if (
        not isinstance(notification, Fired)
        or notification.path != effect.path
        or isinstance(effect, AddWatch)
    ):
        return False
    if not getattr(effect, "watch", False):
        return False
    assert isinstance(effect, Exists | GetData | GetChildren), "only reads set watches"
    return notification.what in (CHILD_EVENTS if isinstance(effect, GetChildren) else DATA_EVENTS)
