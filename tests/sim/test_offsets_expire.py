"""Offsets that expire, and a topic of offsets that is compacted, and mutants of the cleaner."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.sim.test_offsets_in_kafka import details, scenario, verdict
from watchkeeper import simulate
from watchkeeper.model.log_08 import cleaner, compaction
from watchkeeper.model.properties.group_offsets import FOUND, GOES_ON, STAYS_EXPIRED
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import ScenarioError
from watchkeeper.scenarios.shipped_files import shipped_text

COMPACTED = {
    "offsets.topic.segment.bytes": 3000,
    "log.cleaner.enable": True,
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.min.cleanable.ratio": 0.1,
}


def compacting(*timeline: dict[str, Any], settle: str = "10s", **config: Any) -> dict[str, Any]:
    """Return a scenario whose offsets topic is compacted."""
    fields = scenario(*timeline, settle=settle)
    fields["clusters"]["main"]["replication"]["offsets_topic"]["config"] = {
        **COMPACTED,
        **config,
    }
    return fields


# --- what groups find ------------------------------------------------------------------


def test_a_group_that_stood_still_begins_where_its_settings_say() -> None:
    """Its offsets have expired: one group reads all again, the other one what comes next."""
    result = simulate("offsets-expire", seed=1)
    assert result.met
    first: dict[str, int] = {}
    for event in result.trace.of_kind(EventKind.CONSUMED):
        if 94_000_000 < event.t_us < 105_000_000:
            first.setdefault(event.node, event.detail["ranges"][0][3])
    assert first["again/0"] == 0
    assert first["onward/0"] > 400


def test_a_coordinator_that_ends_while_it_compacts_loses_no_offset() -> None:
    """Its host is lost between the copy of segments and their replacement."""
    result = simulate("coordinator-crash-while-compacting", seed=1)
    assert result.met
    assert verdict(result, FOUND) is verdict(result, GOES_ON) is Verdict.HOLDS
    [struck] = [
        effect
        for effect in result.effects
        if effect.action.verb.name == "crash_host" and effect.counts["bytes lost"] > 0
    ]
    assert struck.at_us == max(
        event.t_us
        for event in result.trace.of_kind(EventKind.LOG_COPIED)
        if event.t_us <= (struck.at_us or 0)
    )


@pytest.mark.parametrize(("variant", "comes_back"), [("kafka_08", True), ("hardened", False)])
def test_a_tombstone_that_a_replica_has_missed(variant: str, comes_back: bool) -> None:
    """As shipped, the expired offset is there again when that replica leads."""
    result = simulate("tombstone-missed", variant=variant, seed=1)
    assert result.met
    assert (verdict(result, STAYS_EXPIRED) is Verdict.VIOLATED) is comes_back


# --- mutants of the cleaner -------------------------------------------------------------------

IDLE = (
    {"at": "7s", "leave": "billing/0"},
    {"at": "7s", "leave": "billing/1"},
    {"at": "17s", "crash": "leader of __consumer_offsets/0"},
    {"at": "19s", "start": "billing/0"},
)


def with_other_group() -> dict[str, Any]:
    """A group stands still while the commits of another one let its log be compacted."""
    fields = compacting(*IDLE)
    config = fields["groups"]["billing"]["config"]
    other = {"consumers": 1, "streams": {"clicks": 1}, "config": config}
    fields["groups"]["other"] = other
    return fields


def test_the_latest_commit_of_an_idle_group_survives_compaction() -> None:
    result = simulate(with_other_group(), seed=1)
    assert details(result, EventKind.LOG_COMPACTED)
    assert verdict(result, FOUND) is verdict(result, GOES_ON) is Verdict.HOLDS


def test_a_cleaner_that_drops_the_latest_of_a_key_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was acknowledged is not found by the next coordinator."""

    def stays(self: Any, offset: int, key: bytes | None, value: bytes | None) -> bool:
        key, value = self._key_and_value(key, value)
        return key is None or offset != self._latest.get(key, offset)

    monkeypatch.setattr(compaction._Filter, "_stays", stays)
    result = simulate(with_other_group(), seed=1)
    assert result.judgement.violated()
    assert verdict(result, GOES_ON) is Verdict.VIOLATED


def test_a_tombstone_that_is_removed_too_early_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the retention of a day a replica that was away finds it; without, it does not."""
    fields = tombstones_kept()
    kept = simulate(fields, variant="kafka_08", seed=1)
    assert verdict(kept, STAYS_EXPIRED) is Verdict.HOLDS

    def without(self: Any, dirty: Any, modified: Any) -> Any:
        return tuple(
            each._replace(keeps_tombstones=False) for each in whole(self, dirty, modified)
        )

    whole = cleaner.Cleaner._sources
    monkeypatch.setattr(cleaner.Cleaner, "_sources", without)
    lost = simulate(fields, variant="kafka_08", seed=1)
    assert verdict(lost, STAYS_EXPIRED) is Verdict.VIOLATED


def tombstones_kept() -> dict[str, Any]:
    """Return the shipped scenario, with Kafka's retention of tombstones."""
    fields: dict[str, Any] = yaml.safe_load(shipped_text("tombstone-missed"))
    config = fields["clusters"]["main"]["replication"]["offsets_topic"]["config"]
    del config["log.cleaner.delete.retention.ms"]
    return fields


# --- settings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"log.cleaner.backoff.ms": 10}, "has no effect without `log.cleaner.enable: true`"),
        ({"offsets.topic.segment.bytes": 10}, "has no effect without `log.cleaner.enable: true`"),
        ({"offsets.topic.num.partitions": 2}, "is set by `partitions` of `offsets_topic`"),
        ({"offset.metadata.max.bytes": 2}, "members of groups commit no text"),
        ({"offsets.retention.minuts": 2}, "offsets.retention.minutes"),
        ({"offsets.retention.minutes": 0}, "expected a whole number from 1 to"),
        ({"log.cleaner.enable": "perhaps"}, "expected true or false"),
        ({"log.cleaner.enable": True, "log.cleaner.min.cleanable.ratio": 2}, "from 0 to 1"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(config: dict[str, Any], why: str) -> None:
    """Each with a sentence."""
    fields = scenario()
    fields["clusters"]["main"]["replication"]["offsets_topic"]["config"] = config
    with pytest.raises(ScenarioError) as refused:
        simulate(fields)
    assert why in str(refused.value)
