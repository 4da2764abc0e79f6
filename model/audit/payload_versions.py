"""The versions of JSON payloads, against the fields that a reader of that version needs.

A registration that this tool reads may still be of no use to others: from version 2 on, clients
of 0.9 and later look for a broker's address in `endpoints` alone, and in version 1 they do not
look there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.audit.finding import Finding, FindingKind
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A contradiction between the version of a payload and its fields."""

    is_broken_by: Callable[[int, Fields], bool]
    """Takes the version and the fields."""
    says: str


OF_BROKERS = (
    Rule(
        lambda version, fields: version >= 2 and not fields.get("endpoints"),
        "no endpoints, where clients of 0.9 and later look for the address from version 2 on",
    ),
    Rule(
        lambda version, fields: version == 1 and bool(fields.get("endpoints")),
        "endpoints, which clients of 0.9 and later read from version 2 on",
    ),
)
OF_ASSIGNMENTS = (
    Rule(
        lambda version, fields: version >= 2 and "adding_replicas" not in fields,
        "no adding_replicas, which belong to a topic's assignment from version 2 on (Kafka 2.4)",
    ),
)


def version_findings(snapshot: Snapshot) -> list[Finding]:
    """Every payload whose fields contradict its version."""
    return [
        *_broken(snapshot, paths.BROKER_IDS, OF_BROKERS),
        *_broken(snapshot, paths.TOPICS, OF_ASSIGNMENTS),
    ]


def _broken(snapshot: Snapshot, above: str, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    for name in snapshot.children(above):
        path = f"{above}/{name}"
        fields = _fields(path, snapshot.data(path))
        version = fields.get("version")
        if type(version) is int:
            for rule in rules:
                if rule.is_broken_by(version, fields):
                    message = f"{path} has version {version} and {rule.says}"
                    yield Finding(FindingKind.BAD_PAYLOAD, message, path=path)


def _fields(path: str, data: bytes | None) -> Fields:
    """The fields of a payload in JSON; none of any other, which has no version."""
    try:
        return paths.decode_json(path, data, "JSON")
    except BadPayload:
        return {}
