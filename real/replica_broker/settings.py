"""The settings of a broker of 0.8 that replicates, with the names and defaults of Kafka 0.8.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from watchkeeper.model.configuration.settings import INT32_MAX, TRUTHS, Setting, number_of
from watchkeeper.model.offset_manager.settings import ReplicatedOffsetSettings
from watchkeeper.model.replication.settings import AutoCreation, FetchLayout, ReplicationSettings
from watchkeeper.model.replication.truncation import HIGH_WATERMARK
from watchkeeper.model.replication.variants import REPLICATIONS, SlowFollower
from watchkeeper.real.broker.settings import HIGHEST_PORT, folder_of

FOLDER_KEY = "log.dirs"
SECOND_MS = 1_000


@dataclass(frozen=True, slots=True)
class ReplicaBrokerSettings:
    """The settings of one broker's process."""

    log_dir: Path
    port: int
    session_timeout_ms: int
    replication: ReplicationSettings
    offsets: ReplicatedOffsetSettings
    rebalance_ms: int | None
    """None: preferred replicas lead on request."""
    shutdown_backoff_ms: int | None
    """None: a broker that ends hands nothing over."""
    deletes_topics: bool


class Number(NamedTuple):
    """A setting with a number, and its default in its own unit."""

    row: Setting
    default: int
    needs: str = ""
    """The switch without which it has no effect."""


class Switch(NamedTuple):
    """A setting that is true or false."""

    key: str
    default: bool
    about: str


CREATES, REBALANCES = "auto.create.topics.enable", "auto.leader.rebalance.enable"
HANDS_OVER, UNCLEAN = "controlled.shutdown.enable", "unclean.leader.election.enable"
DELETES, LAG_MESSAGES = "delete.topic.enable", "replica.lag.max.messages"

SWITCHES = (
    Switch(CREATES, True, "whether topics are created that clients want and that do not exist"),
    Switch(UNCLEAN, True, "whether a replica that is not in the ISR may lead"),
    Switch(DELETES, False, "whether requests to delete topics are carried out"),
    Switch(REBALANCES, True, "whether preferred replicas lead again by themselves"),
    Switch(HANDS_OVER, True, "whether a broker that ends hands over what it leads first"),
)


def _number(
    key: str,
    field: str,
    default: int,
    about: str,
    *,
    least: int = 1,
    most: int = INT32_MAX,
    unit: int = 1,
    needs: str = "",
) -> Number:
    return Number(Setting(key, field, least, most, about, unit), default, needs)


NUMBERS = (
    _number("broker.id", "broker_id", 0, "the id under which the broker registers", least=0),
    _number(
        "port",
        "port",
        9092,
        "the port on which it listens; 0: any free one",
        least=0,
        most=HIGHEST_PORT,
    ),
    _number(
        "zookeeper.session.timeout.ms",
        "session_timeout_ms",
        6_000,
        "the time without a heartbeat after which ZooKeeper ends its session",
    ),
    _number(
        "num.partitions",
        "new_partitions",
        1,
        "the partitions of a topic that a broker creates",
        needs=CREATES,
    ),
    _number("default.replication.factor", "new_replicas", 1, "its replicas", needs=CREATES),
    _number(
        "min.insync.replicas",
        "min_in_sync",
        1,
        "how many members an ISR needs for messages with `acks` -1",
    ),
    _number(
        "replica.lag.time.max.ms",
        "lag_time_ms",
        10_000,
        "the time after which a silent follower leaves the ISR",
    ),
    _number(
        LAG_MESSAGES,
        "lag_messages",
        4_000,
        "how many messages a follower of `kafka_08` may lack",
    ),
    _number(
        "replica.fetch.wait.max.ms",
        "fetch_wait_ms",
        500,
        "how long a leader waits for something that a follower does not have",
    ),
    _number(
        "replica.high.watermark.checkpoint.interval.ms",
        "checkpoint_ms",
        5_000,
        "how often the high watermarks are written to the disk",
    ),
    _number(
        "leader.imbalance.check.interval.seconds",
        "rebalance_ms",
        300,
        "how often the controller looks whether preferred replicas lead",
        unit=SECOND_MS,
        needs=REBALANCES,
    ),
    _number(
        "controlled.shutdown.retry.backoff.ms",
        "shutdown_backoff_ms",
        5_000,
        "the pause before the second and the third try to hand over",
        needs=HANDS_OVER,
    ),
    _number(
        "offsets.topic.num.partitions",
        "offsets_partitions",
        50,
        "the partitions of the topic of offsets; it must not change later",
    ),
    _number(
        "offsets.topic.replication.factor",
        "offsets_replicas",
        3,
        "its replicas; fewer if fewer brokers are alive when it is created",
    ),
    _number(
        "offsets.commit.timeout.ms",
        "offsets_timeout_ms",
        5_000,
        "how long a commit of offsets waits for the ISR",
    ),
)
KEYS = (FOLDER_KEY, *(each.row.key for each in NUMBERS), *(each.key for each in SWITCHES))


def replica_broker_settings(given: Mapping[str, Any], variant: str) -> ReplicaBrokerSettings:
    """Build the settings of a variant from Kafka's keys; the others have Kafka's defaults.

    Raises ValueError, in a sentence, for an unknown key, an invalid value or one without effect.
    """
    rest = dict(given)
    folder = folder_of(rest, FOLDER_KEY)
    switches = {each.key: _truth(each, rest) for each in SWITCHES}
    _check_effects(rest, switches, variant)
    found = {row.field: number_of(row, rest.pop(row.key, default)) for row, default, _ in NUMBERS}
    if rest:
        raise ValueError(_unknown(next(iter(rest))))
    return ReplicaBrokerSettings(
        folder,
        found["port"],
        found["session_timeout_ms"],
        _replication(found, switches, variant),
        ReplicatedOffsetSettings(
            partitions=found["offsets_partitions"],
            replicas=found["offsets_replicas"],
            commit_timeout_ms=found["offsets_timeout_ms"],
        ),
        found["rebalance_ms"] if switches[REBALANCES] else None,
        found["shutdown_backoff_ms"] if switches[HANDS_OVER] else None,
        switches[DELETES],
    )


def _replication(
    found: Mapping[str, int], switches: Mapping[str, bool], variant: str
) -> ReplicationSettings:
    """Brokers fetch as Kafka's do where their variant can, so that both can be in one cluster."""
    chosen = REPLICATIONS[variant]
    as_in_08 = chosen.truncation == HIGH_WATERMARK
    creation = AutoCreation(found["new_partitions"], found["new_replicas"])
    return ReplicationSettings(
        found["broker_id"],
        chosen,
        min_in_sync=found["min_in_sync"],
        allows_unclean=switches[UNCLEAN],
        lag_time_ms=found["lag_time_ms"],
        lag_messages=found["lag_messages"],
        fetch_wait_ms=found["fetch_wait_ms"],
        checkpoint_ms=found["checkpoint_ms"],
        auto_creation=creation if switches[CREATES] else None,
        fetch_layout=FetchLayout.KAFKA_08 if as_in_08 else FetchLayout.WITH_EPOCHS,
    )


def _check_effects(given: Mapping[str, Any], switches: Mapping[str, bool], variant: str) -> None:
    for row, _, needs in NUMBERS:
        if needs and row.key in given and not switches[needs]:
            raise ValueError(f"{row.key} has no effect with {needs}=false; leave it out")
    by_messages = REPLICATIONS[variant].slow_follower is not SlowFollower.LONG_BEHIND
    if LAG_MESSAGES in given and not by_messages:
        raise ValueError(
            f"{LAG_MESSAGES} has no effect in {variant}, where a follower leaves the ISR by "
            "replica.lag.time.max.ms alone; leave it out"
        )


def _truth(switch: Switch, rest: dict[str, Any]) -> bool:
    value = rest.pop(switch.key, switch.default)
    found = TRUTHS.get(value, value)
    if type(found) is not bool:
        raise ValueError(f"{switch.key} is {value!r}; expected true or false")
    return found


def _unknown(key: str) -> str:
    near = get_close_matches(key, KEYS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(KEYS)}"
    return f"{key} is not a setting that a broker with --replicate has; {hint}"
