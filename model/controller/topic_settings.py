"""How a broker learns of changed settings of topics: by numbered notifications.

A tool writes the settings of a topic, and then a notification with a number. Every broker
watches the list of notifications; the settings themselves it reads from the topic's znode.

A server lists children in the order of its hash table. 0.8.2.2 takes them in that order, and
skips a number that is not above the last one: so a change may be hidden for as long as the
broker runs. At its start it sorts them.

Any broker that has taken a notification purges the ones that are older than fifteen minutes, by
its own clock: the oldest first, up to the first that is younger. 0.8.2.2 does so after each, and
may purge one that it has not come to; so does another broker while this one is cut off.

Kafka 0.8.2.2: TopicConfigManager. There a broker purges only after a change of a topic of which
it has a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from watchkeeper.model.actor.effects import emit, now_ms
from watchkeeper.model.actor.errors import NoNode
from watchkeeper.model.actor.operations import Delete, GetChildren, GetData
from watchkeeper.model.actor.retry import Requests, read_or_none
from watchkeeper.model.actor.tasks import UNBOUNDED, put
from watchkeeper.model.controller.state_machines.variants import SettingsChanges
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import ConfigChange, TopicConfig
from watchkeeper.model.replication.replicas import SETTINGS
from watchkeeper.model.trace.kinds import EventKind

KEPT_MS = 900_000
"""How long notifications are kept."""


@dataclass(frozen=True, slots=True)
class SettingsState:
    """What a broker knows of the notifications."""

    is_due: bool = True
    """Whether the list has to be read."""
    has_begun: bool = False
    last: int = -1
    """The greatest number that it has handled."""
    handled: frozenset[int] = frozenset()
    """The numbers that were in the list, where each is taken once."""

    def due(self) -> SettingsState:
        """Return the state in which the list has to be read again."""
        return replace(self, is_due=True)


async def follow_settings(
    requests: Requests, changes: SettingsChanges, state: SettingsState
) -> SettingsState:
    """Handle the notifications that are new, and watch for the next one."""
    listed = await _numbers(requests)
    if changes is SettingsChanges.AS_LISTED:
        return await _take_as_listed(requests, listed, state)
    return await _take_every_new(requests, listed, state)


async def _take_as_listed(
    requests: Requests, listed: Sequence[int], state: SettingsState
) -> SettingsState:
    """Take those above the last one, and purge old ones after each: that may be the next one."""
    last = state.last
    for number in listed if state.has_begun else sorted(listed):
        if number <= last:
            continue
        try:
            if await _apply(requests, number):
                await _purge(requests, listed)
        except BadPayload as unreadable:
            await emit(EventKind.SETTINGS_REFUSED, why=str(unreadable))
            break
        last = number
    return SettingsState(False, True, last)


async def _take_every_new(
    requests: Requests, listed: Sequence[int], state: SettingsState
) -> SettingsState:
    """Take each once, and purge old ones then; where one was purged before, read all settings."""
    fresh = [number for number in sorted(listed) if number not in state.handled]
    if state.has_begun and _has_gap(fresh, listed, state.last):
        await _apply_all(requests)
    has_taken = False
    for number in fresh:
        try:
            has_taken |= await _apply(requests, number)
        except BadPayload as unreadable:
            await emit(EventKind.SETTINGS_REFUSED, why=str(unreadable))
    if has_taken:
        await _purge(requests, listed)
    return SettingsState(False, True, max((state.last, *listed)), frozenset(listed))


def _has_gap(fresh: Sequence[int], listed: Sequence[int], last: int) -> bool:
    """Whether a notification has come and gone since the last one that was seen.

    The newest one is never purged: it takes a newer one to do so.
    """
    between = range(last + 1, max(fresh, default=last))
    return any(number not in listed for number in between)


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


async def _apply(requests: Requests, number: int) -> bool:
    """Read what a notification is about, and let the tasks of this process know.

    Returns whether it was there; raises BadPayload.
    """
    path = paths.config_change(number)
    seen = await read_or_none(requests, GetData(path, False, "read settings"))
    if seen is None:
        return False
    await _apply_settings(requests, ConfigChange.decode(path, seen.data).topic)
    return True


async def _apply_settings(requests: Requests, topic: str) -> None:
    path = paths.topic_config(topic)
    found = await read_or_none(requests, GetData(path, False, "read settings"))
    config = TopicConfig() if found is None else TopicConfig.decode(path, found.data)
    await put(SETTINGS, (topic, config), UNBOUNDED)


async def _apply_all(requests: Requests) -> None:
    """Read the settings of all topics."""
    try:
        topics = await requests(GetChildren(paths.TOPIC_CONFIGS, False, "read settings"))
    except NoNode:
        return
    for topic in sorted(topics):
        try:
            await _apply_settings(requests, topic)
        except BadPayload as unreadable:
            await emit(EventKind.SETTINGS_REFUSED, topic=topic, why=str(unreadable))


async def _purge(requests: Requests, listed: Sequence[int]) -> None:
    """Delete old notifications, the oldest first, up to the first that is not old."""
    now = await now_ms()
    for number in sorted(listed):
        path = paths.config_change(number)
        seen = await read_or_none(requests, GetData(path, False, "read settings"))
        if seen is None:
            continue
        if now - seen.stat.ctime <= KEPT_MS:
            return
        with suppress(NoNode):
            await requests(Delete(path, purpose="other"))
