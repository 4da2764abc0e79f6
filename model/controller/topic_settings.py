"""How a broker learns of changed settings of topics: by numbered notifications.

A tool writes the settings of a topic, and then a notification with a number. Every broker
watches the list of notifications; the settings themselves it reads from the topic's znode.

A server lists children in the order of its hash table. 0.8.2.2 takes them in that order, and
skips a number that is not above the last one: so a change may be hidden for as long as the
broker runs. At its start it sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from watchkeeper.model.actor.effects import emit
from watchkeeper.model.actor.errors import NoNode
from watchkeeper.model.actor.operations import GetChildren, GetData
from watchkeeper.model.actor.retry import Requests, read_or_none
from watchkeeper.model.actor.tasks import UNBOUNDED, put
from watchkeeper.model.controller.state_machines.variants import SettingsChanges
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import ConfigChange, TopicConfig
from watchkeeper.model.replication.replicas import SETTINGS
from watchkeeper.model.trace.kinds import EventKind


@dataclass(frozen=True, slots=True)
class SettingsState:
    """What a broker knows of the notifications."""

    is_due: bool = True
    """Whether the list has to be read."""
    has_begun: bool = False
    last: int = -1
    """The greatest number that it has handled."""
    handled: frozenset[int] = frozenset()
    """The numbers in the list that it has handled."""

    def due(self) -> SettingsState:
        """Return the state in which the list has to be read again."""
        return replace(self, is_due=True)


async def follow_settings(
    requests: Requests, changes: SettingsChanges, state: SettingsState
) -> SettingsState:
    """Handle the notifications that are new, and watch for the next one."""
    listed = await _numbers(requests)
    handled, last = state.handled & frozenset(listed), state.last
    for number in _in_order(listed, changes, state):
        if changes is SettingsChanges.AS_LISTED and number <= last:
            continue
        if changes is SettingsChanges.EVERY_NEW and number in handled:
            continue
        try:
            await _apply(requests, number)
        except BadPayload as unreadable:
            await emit(EventKind.SETTINGS_REFUSED, why=str(unreadable))
            if changes is SettingsChanges.AS_LISTED:
                break
        handled |= {number}
        last = max(last, number)
    return SettingsState(False, True, last, handled)


def _in_order(
    listed: Sequence[int], changes: SettingsChanges, state: SettingsState
) -> Sequence[int]:
    """The order in which notifications are taken."""
    if changes is SettingsChanges.AS_LISTED and state.has_begun:
        return listed
    return sorted(listed)


async def _numbers(requests: Requests) -> tuple[int, ...]:
    """The numbers of the notifications, in the order of the server."""
    try:
        listed = await requests(GetChildren(paths.CONFIG_CHANGES, True, "read settings"))
    except NoNode:
        return ()
    return tuple(_numbers_in(listed))


def _numbers_in(names: Sequence[str]) -> Iterator[int]:
    for name in names:
        number = paths.number_of_change(name)
        if number is not None:
            yield number


async def _apply(requests: Requests, number: int) -> None:
    """Read what a notification is about, and let the tasks of this process know.

    Raises BadPayload.
    """
    path = paths.config_change(number)
    seen = await read_or_none(requests, GetData(path, False, "read settings"))
    if seen is None:
        return
    topic = ConfigChange.decode(path, seen.data).topic
    path = paths.topic_config(topic)
    found = await read_or_none(requests, GetData(path, False, "read settings"))
    config = TopicConfig() if found is None else TopicConfig.decode(path, found.data)
    await put(SETTINGS, (topic, config), UNBOUNDED)
