"""How brokers that replicate keep the offsets of groups, as a scenario says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from watchkeeper.model.configuration.settings import taken
from watchkeeper.model.log_08.cleaner_settings import (
    CLEANER_KEY,
    CLEANER_SETTINGS,
    RATIO_KEY,
    cleaner_settings,
)
from watchkeeper.model.offset_manager.settings import OFFSETS_SETTINGS, ReplicatedOffsetSettings
from watchkeeper.model.replication.requests import ALL
from watchkeeper.scenarios.plan.context import Context
from watchkeeper.scenarios.schema.replication_schema import OffsetsModel
from watchkeeper.scenarios.text.errors import expected

FIELDS = {
    "offsets.topic.num.partitions": "partitions",
    "offsets.topic.replication.factor": "replicas",
    "offsets.commit.required.acks": "required_acks",
    "offsets.commit.timeout.ms": "commit_timeout",
}
"""Kafka's name -> the field of a scenario that sets it."""
METADATA_KEY = "offset.metadata.max.bytes"
SEGMENT_KEY = "offsets.topic.segment.bytes"
OF_CLEANER = (RATIO_KEY, *(row.key for row in CLEANER_SETTINGS), SEGMENT_KEY)
"""What has no effect without a cleaner."""
KNOWN = (
    CLEANER_KEY,
    *OF_CLEANER,
    *(row.key for row in OFFSETS_SETTINGS if row.key not in {*FIELDS, METADATA_KEY, SEGMENT_KEY}),
)


def offsets(context: Context, cluster: str, model: OffsetsModel) -> ReplicatedOffsetSettings:
    """Return how the brokers of a cluster keep offsets; problems are noted."""
    path = ("clusters", cluster, "replication", "offsets_topic", "config")
    own = ReplicatedOffsetSettings(
        partitions=model.partitions,
        replicas=model.replicas,
        required_acks=ALL if model.required_acks == "all" else 1,
        commit_timeout_ms=model.commit_timeout // 1000,
    )
    rest = dict(model.config)
    problems = dict(_problems(rest))
    for key, problem in problems.items():
        context.problem((*path, key), problem)
        del rest[key]
    try:
        cleaner = cleaner_settings(rest)
        given: dict[str, Any] = dict(taken(rest, OFFSETS_SETTINGS))
    except ValueError as error:
        context.problem(path, str(error))
        return own
    for key in OF_CLEANER:
        if key in model.config and not cleaner.is_enabled and key not in problems:
            context.problem((*path, key), f"has no effect without `{CLEANER_KEY}: true`")
    return replace(own, **given, cleaner=cleaner)


def _problems(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each key that cannot be given, and why."""
    for key in given:
        if key in FIELDS:
            yield key, f"is set by `{FIELDS[key]}` of `offsets_topic`; leave it out"
        elif key == METADATA_KEY:
            yield key, "has no effect: members of groups commit no text; leave it out"
        elif key not in KNOWN:
            yield key, expected(key, "a setting of the offset manager", sorted(KNOWN))
