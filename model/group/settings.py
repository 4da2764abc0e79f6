"""A consumer's settings, by Kafka's own names and with Kafka's own defaults.

The names and some defaults changed between 0.7.2 and 0.8.2. Either name is understood;
the default is that of the release a variant stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from watchkeeper.model.configuration.value import plain
from watchkeeper.model.offset_manager.migration import OffsetStorage, Store

Release = Literal["0.7.2", "0.8.2"]
Reset = Literal["smallest", "largest"]
Storage = Literal["zookeeper", "kafka"]


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """The settings of a consumer."""

    session_timeout_ms: int
    sync_time_ms: int
    rebalance_retries: int
    rebalance_backoff_ms: int
    auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: Reset
    exclude_internal_topics: bool
    assignor: str
    fetch_bytes: int
    fetch_min_bytes: int
    fetch_wait_ms: int
    fetch_backoff_ms: int
    queued_chunks: int
    socket_timeout_ms: int
    consumer_timeout_ms: int
    offsets_storage: Storage
    dual_commit: bool
    offsets_backoff_ms: int
    offsets_timeout_ms: int
    offsets_retries: int

    @property
    def storage(self) -> OffsetStorage:
        """Where offsets are kept."""
        return OffsetStorage(Store(self.offsets_storage), self.dual_commit)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: a field, its names, its defaults and what it does."""

    field: str
    key_07: str
    key_08: str
    default_07: Any
    default_08: Any
    about: str
    least: int = 0
    choices: tuple[str, ...] = ()

    def default(self, release: Release) -> Any:
        """The default of a release."""
        return self.default_07 if release == "0.7.2" else self.default_08


SETTINGS = (
    Setting(
        "session_timeout_ms",
        "zk.sessiontimeout.ms",
        "zookeeper.session.timeout.ms",
        6000,
        6000,
        "the time without a heartbeat after which ZooKeeper ends the session",
        least=1,
    ),
    Setting(
        "sync_time_ms",
        "zk.synctime.ms",
        "zookeeper.sync.time.ms",
        2000,
        2000,
        "the largest lag of a ZooKeeper follower; the default of the back-off",
        least=1,
    ),
    Setting(
        "rebalance_retries",
        "rebalance.retries.max",
        "rebalance.max.retries",
        4,
        4,
        "the number of attempts of a rebalance",
        least=1,
    ),
    Setting(
        "rebalance_backoff_ms",
        "rebalance.backoff.ms",
        "rebalance.backoff.ms",
        None,
        None,
        "the pause after a failed attempt",
        least=1,
    ),
    Setting(
        "auto_commit",
        "autocommit.enable",
        "auto.commit.enable",
        True,
        True,
        "whether a timer commits offsets",
    ),
    Setting(
        "auto_commit_interval_ms",
        "autocommit.interval.ms",
        "auto.commit.interval.ms",
        10_000,
        60_000,
        "the interval of that timer",
        least=1,
    ),
    Setting(
        "auto_offset_reset",
        "autooffset.reset",
        "auto.offset.reset",
        "smallest",
        "largest",
        "the first offset in a partition without a committed offset",
        choices=("smallest", "largest"),
    ),
    Setting(
        "exclude_internal_topics",
        "exclude.internal.topics",
        "exclude.internal.topics",
        True,
        True,
        "whether filters exclude Kafka's internal topics",
    ),
    Setting(
        "assignor",
        "partition.assignment.strategy",
        "partition.assignment.strategy",
        "range",
        "range",
        "the assignment of partitions",
        choices=("range", "roundrobin", "roundrobin_11"),
    ),
    Setting(
        "fetch_bytes",
        "fetch.size",
        "fetch.message.max.bytes",
        1_048_576,
        1_048_576,
        "the size of one fetch of a partition; no message may be larger",
        least=1,
    ),
    Setting(
        "fetch_min_bytes",
        "fetch.min.bytes",
        "fetch.min.bytes",
        1,
        1,
        "0.8: how much a broker waits for before it answers a fetch",
    ),
    Setting(
        "fetch_wait_ms",
        "fetch.wait.max.ms",
        "fetch.wait.max.ms",
        100,
        100,
        "0.8: how long it waits for that",
    ),
    Setting(
        "fetch_backoff_ms",
        "fetcher.backoff.ms",
        "refresh.leader.backoff.ms",
        1000,
        200,
        "the pause after a fetch that found no messages or failed",
        least=1,
    ),
    Setting(
        "queued_chunks",
        "queuedchunks.max",
        "queued.max.message.chunks",
        10,
        2,
        "the largest number of fetched chunks in the queue of a stream",
        least=1,
    ),
    Setting(
        "socket_timeout_ms",
        "socket.timeout.ms",
        "socket.timeout.ms",
        30_000,
        30_000,
        "the time limit of a broker's response",
        least=1,
    ),
    Setting(
        "consumer_timeout_ms",
        "consumer.timeout.ms",
        "consumer.timeout.ms",
        -1,
        -1,
        "the time after which a stream without messages raises an error; -1: never",
        least=-1,
    ),
    Setting(
        "offsets_storage",
        "offsets.storage",
        "offsets.storage",
        "zookeeper",
        "zookeeper",
        "where offsets are committed; `kafka`: to the coordinator of the group",
        choices=("zookeeper", "kafka"),
    ),
    Setting(
        "dual_commit",
        "dual.commit.enabled",
        "dual.commit.enabled",
        False,
        False,
        "with `offsets.storage=kafka`: whether offsets are committed to ZooKeeper too, and the "
        "greater of both is read; yes by default with that storage",
    ),
    Setting(
        "offsets_backoff_ms",
        "offsets.channel.backoff.ms",
        "offsets.channel.backoff.ms",
        1000,
        1000,
        "the pause before the coordinator is looked up again",
        least=1,
    ),
    Setting(
        "offsets_timeout_ms",
        "offsets.channel.socket.timeout.ms",
        "offsets.channel.socket.timeout.ms",
        10_000,
        10_000,
        "the time limit of a coordinator's response",
        least=1,
    ),
    Setting(
        "offsets_retries",
        "offsets.commit.max.retries",
        "offsets.commit.max.retries",
        5,
        5,
        "how often a member that leaves repeats a commit that the coordinator did not accept",
    ),
)

assert {row.field for row in SETTINGS} == {row.name for row in fields(ConsumerSettings)}

OF_FETCHES_08 = ("fetch_min_bytes", "fetch_wait_ms")
"""The settings that only fetches in the protocol of 0.8 have."""

KEYS = {key: row for row in SETTINGS for key in (row.key_07, row.key_08)}


def consumer_settings(
    release: Release, given: Mapping[str, Any] | None = None
) -> ConsumerSettings:
    """Put settings together from defaults and from what is given by Kafka's names.

    Raises ValueError, in a sentence, for a key or a value that is not understood.
    """
    values = {row.field: row.default(release) for row in SETTINGS}
    for key, value in (given or {}).items():
        row = setting(key)
        values[row.field] = _checked(key, row, value)
    if not {setting(key).field for key in given or {}} & {"dual_commit"}:
        values["dual_commit"] = values["offsets_storage"] == Store.KAFKA
    if values["rebalance_backoff_ms"] is None:
        values["rebalance_backoff_ms"] = values["sync_time_ms"]
    return ConsumerSettings(**values)


def setting(key: str) -> Setting:
    """The setting with this name; ValueError names the nearest one there is."""
    if key not in KEYS:
        hint = _did_you_mean(key, KEYS)
        hint = hint or f"; expected one of {', '.join(row.key_08 for row in SETTINGS)}"
        raise ValueError(f"{key} is not a setting that these consumers have{hint}")
    return KEYS[key]


def _did_you_mean(word: Any, words: Iterable[str]) -> str:
    near = get_close_matches(str(word), list(words), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _checked(key: str, row: Setting, value: Any) -> Any:
    if row.choices:
        if value not in row.choices:
            hint = _did_you_mean(value, row.choices)
            raise ValueError(
                f"{key} is {value!r}; expected one of {', '.join(row.choices)}{hint}"
            )
        return value
    found = plain(value)
    if isinstance(row.default_08, bool):
        if type(found) is not bool:
            raise ValueError(f"{key} is {value!r}; expected true or false")
    elif type(found) is not int or found < row.least:
        raise ValueError(f"{key} is {value!r}; expected a whole number of at least {row.least}")
    return found
