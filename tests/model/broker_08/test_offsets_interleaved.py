"""A coordinator whose requests, loads, expiry and compaction take turns at every effect.

What has to hold (F1, F2): after a commit was acknowledged, each fetch without an error gives it
or a later one; no offset is given only if none was acknowledged, or if it has expired.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from tests.support.keyed_broker import HEADER, Broker
from watchkeeper.model.actor.effects import Sleep
from watchkeeper.model.actor.tasks import Put, Start, Take
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.log_08.cleaner import Cleaner
from watchkeeper.model.log_08.cleaner_settings import CleanerSettings
from watchkeeper.model.log_08.settings import DEFAULTS, KeyedLogSettings
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, OffsetSettings
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionNumber,
    TimedCommit,
)

MINUTE_MS = 60_000
RETENTION_MS = 10 * MINUTE_MS
KEYS = range(3)
FETCH, COMMIT, EXPIRE, CLEAN, KILL = "fetch", "commit", "expire", "clean", "kill"


@dataclass(slots=True)
class Task:
    """A coroutine, the effect that it waits for, and who hears its result."""

    body: Coroutine[Any, Any, Any]
    done: Callable[[Any], None]
    effect: Any = None


class World:
    """A broker whose tasks take turns."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.settings = OffsetSettings(
            partitions=1, retention_ms=RETENTION_MS, load_buffer_bytes=100
        )
        self.broker = Broker(offsets=self.settings, log_settings=_log_settings())
        self.broker.create("t")
        for _ in range(2):
            self.broker.ask(ConsumerMetadataRequest("g"))
        self.tasks: list[Task] = []
        self.acknowledged = dict.fromkeys(KEYS, -1)
        """Partition -> the newest offset whose commit was acknowledged."""
        self.times_ms: dict[int, dict[int, int]] = {key: {} for key in KEYS}
        """Partition -> offset -> the time of its commit, acknowledged or not."""
        self.committing: set[int] = set()
        self.sent = 0
        self.fetches = self.found = 0
        self._begin_process()

    def _begin_process(self) -> None:
        logs, locked = self.broker.serving.logs, self.broker.serving.locked
        self.cleaner = Cleaner(logs, locked, CleanerSettings(min_dirty_ratio=0.0))

    # --- turns -------------------------------------------------------------------------

    def start(self, body: Coroutine[Any, Any, Any], done: Callable[[Any], None]) -> None:
        """Start a task."""
        task = Task(body, done)
        self.tasks.append(task)
        self._go_on(task, None)

    def _go_on(self, task: Task, answer: Any) -> None:
        try:
            task.effect = task.body.send(answer)
        except StopIteration as ended:
            self.tasks.remove(task)
            task.done(ended.value)

    def _can_go_on(self, task: Task) -> bool:
        queue = self.broker.queues.setdefault(getattr(task.effect, "queue", ""), deque())
        if isinstance(task.effect, Put):
            return len(queue) < task.effect.bound or task.effect.timeout_ms == 0
        return not isinstance(task.effect, Take) or bool(queue)

    def turn(self) -> None:
        """Let one of the tasks that can go on do so."""
        able = [task for task in self.tasks if self._can_go_on(task)]
        if not able:
            assert not self.tasks, "every task waits for another"
            return
        task = self.chance.choice(able)
        effect = task.effect
        if isinstance(effect, Start):
            self._go_on(task, None)
            self.start(effect.thread(), lambda _: None)
        elif isinstance(effect, Sleep):
            self._go_on(task, None)
        elif isinstance(effect, Put) and effect.timeout_ms == 0:
            queue = self.broker.queues[effect.queue]
            if len(queue) < effect.bound:
                queue.append(effect.item)
            self._go_on(task, True)
        else:
            self._go_on(task, self.broker.answer(effect))

    # --- actions -----------------------------------------------------------------------

    def act(self, action: str) -> None:
        """Begin something."""
        key = self.chance.choice(KEYS)
        if action == FETCH:
            self._fetch(key)
        elif action == COMMIT and key not in self.committing:
            self._commit(key)
        elif action == EXPIRE:
            self.start(self.broker.serving.coordinator.expire(), lambda _: None)
        elif action == CLEAN and not any(task.done is _cleaned for task in self.tasks):
            self.start(self.cleaner.clean_dirtiest(), _cleaned)
        elif action == KILL:
            self._kill()

    def _kill(self) -> None:
        for task in self.tasks:
            task.body.close()
        self.tasks.clear()
        self.committing.clear()
        self.broker.start()
        self._begin_process()
        self.start(self.broker.serving.refresh(), lambda _: None)

    def _commit(self, key: int) -> None:
        """Commit a greater offset; some are so old that they expire at once."""
        self.sent += 1
        offset, now = self.sent, self.broker.storage.now_ms
        time_ms = now - self.chance.choice((0, 0, 2 * RETENTION_MS))
        part = TimedCommit(key, offset, time_ms)
        request = CommitRequestV1("g", (OfTopic("t", (part,)),))
        self.committing.add(key)
        self.times_ms[key][offset] = time_ms

        def done(response: Any) -> None:
            self.committing.discard(key)
            if not response.topics[0].parts[0].error_code:
                self.acknowledged[key] = offset

        self.start(self.broker.serving.answer(HEADER, request), done)

    def _fetch(self, key: int) -> None:
        before = self.acknowledged[key]
        request = CommittedRequestV1("g", (OfTopic("t", (PartitionNumber(key),)),))

        def done(response: Any) -> None:
            [part] = response.topics[0].parts
            if part.error_code:
                return
            self.fetches += 1
            self.found += part.offset >= 0
            assert part.offset >= before or (part.offset == -1 and self._may_expire(key, before))

        self.start(self.broker.serving.answer(HEADER, request), done)

    def _may_expire(self, key: int, since: int) -> bool:
        """Whether a commit from this one on is so old that it expires."""
        horizon_ms = self.broker.storage.now_ms - RETENTION_MS
        return any(
            time_ms < horizon_ms
            for offset, time_ms in self.times_ms[key].items()
            if offset >= since
        )


def _cleaned(_: Any) -> None:
    """A compaction is over."""


def _log_settings() -> BrokerLogSettings:
    assert isinstance(DEFAULTS.default, KeyedLogSettings)
    own = replace(DEFAULTS.default, is_compacted=True, segment_bytes=300, partitions=1)
    return replace(DEFAULTS, topics=((OFFSETS_TOPIC, own),))


def run(seed: int, turns: int) -> World:
    """Let everything take turns; then everything ends, and each partition is fetched."""
    world = World(seed)
    weights = {FETCH: 6, COMMIT: 8, EXPIRE: 1, CLEAN: 2, KILL: 0.15}
    for _ in range(turns):
        if len(world.tasks) < 6:
            [action] = world.chance.choices(list(weights), list(weights.values()))
            world.act(action)
        world.turn()
        if world.chance.random() < 0.02:
            world.broker.storage.now_ms += world.chance.randrange(MINUTE_MS)
    while world.tasks:
        world.turn()
    for key in KEYS:
        world._fetch(key)
    while world.tasks:
        world.turn()
    return world


def test_acknowledged_commits_are_found_again() -> None:
    worlds = [run(seed, 400) for seed in range(8)]

    assert sum(world.found for world in worlds) > 100
    assert sum(world.sent for world in worlds) > 200


@pytest.mark.slow
def test_acknowledged_commits_are_found_again_in_long_runs() -> None:
    for seed in range(60):
        run(seed, 3000)
