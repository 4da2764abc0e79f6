"""An audit as numbers, in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from watchkeeper.model.audit.finding import SEVERITIES
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.operate.audit.audit import Audited

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
HELP = {
    "up": "Whether the last audit could read the registry.",
    "timestamp_seconds": "When the last audit ended that could read the registry.",
    "verdict": "The verdict of the audit: 1 for the one that holds now.",
    "findings": "Findings, by kind and severity; the group is empty for those of the cluster.",
    "read_seconds": "How long the registry was read.",
    "zxid": "The last transaction that the snapshot has seen.",
    "unread_znodes": "Znodes that could not be read.",
    "brokers": "Registered brokers.",
    "topics": "Topics.",
    "controller_epoch": "The epoch of the controller.",
    "members": "Registered members of a group.",
    "partitions": "Partitions of a topic that a group reads.",
    "owned_partitions": "Partitions of a topic that a member of the group owns.",
    "rebalance_moves": "Partitions that a rebalance would move between members now.",
    "lag_messages": "Messages of a partition that a group has not committed; with --lag.",
}
"""Metric, without its prefix -> what it says. All of them are gauges."""
PREFIX = "watchkeeper_audit_"


class Sample(NamedTuple):
    """One number of a metric, and its labels."""

    metric: str
    value: float
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """An audit, and the moment at which it ended."""

    audited: Audited
    at_s: float
    """Seconds since 1970."""


def metrics_text(last: Reading | None, *, is_up: bool) -> str:
    """Return the numbers of the last audit; with none, only that the registry is not read."""
    samples = [Sample("up", float(is_up), {})]
    if last is not None:
        samples += _samples(last)
    return "".join(f"{line}\n" for line in _lines(samples))


def _lines(samples: Iterable[Sample]) -> Iterator[str]:
    """Yield the lines of each metric together, as the format demands it."""
    by_metric: dict[str, list[Sample]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric, []).append(sample)
    for metric, found in by_metric.items():
        yield f"# HELP {PREFIX}{metric} {HELP[metric]}"
        yield f"# TYPE {PREFIX}{metric} gauge"
        for sample in found:
            yield f"{PREFIX}{metric}{_labels(sample.labels)} {sample.value:.15g}"


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels.items())
    return f"{{{pairs}}}"


def _samples(last: Reading) -> Iterator[Sample]:
    done, audit = last.audited, last.audited.audit
    yield Sample("timestamp_seconds", last.at_s, {})
    for verdict in Verdict:
        yield Sample("verdict", float(audit.verdict is verdict), {"verdict": verdict.value})
    yield from _findings(done)
    yield Sample("read_seconds", audit.snapshot.took_ms / 1000, {})
    yield Sample("zxid", float(audit.snapshot.zxid), {})
    yield Sample("unread_znodes", float(len(audit.snapshot.unread)), {})
    yield Sample("brokers", float(len(audit.census.brokers)), {})
    yield Sample("topics", float(len(audit.census.topics)), {})
    if audit.control.epoch is not None:
        yield Sample("controller_epoch", float(audit.control.epoch), {})
    for group in audit.groups:
        yield Sample("members", float(len(group.members)), {"group": group.name})
        yield Sample("rebalance_moves", float(group.moves), {"group": group.name})
        for topic in group.topics:
            labels = {"group": group.name, "topic": topic.name}
            yield Sample("partitions", float(topic.partitions), labels)
            yield Sample("owned_partitions", float(topic.owned), labels)
        for partition, lag in sorted(done.lag.get(group.name, {}).items()):
            yield Sample(
                "lag_messages", float(lag), {"group": group.name, "partition": partition}
            )


def _findings(done: Audited) -> Iterator[Sample]:
    """Yield the number of findings of each kind, 0 included: an alert then has a value."""
    of_groups = [(group.name, group.findings) for group in done.audit.groups]
    for name, findings in [("", done.audit.findings), *of_groups]:
        counts = Counter(finding.kind for finding in findings)
        for kind, severity in SEVERITIES.items():
            labels = {"kind": kind.value, "severity": severity.word, "group": name}
            yield Sample("findings", float(counts[kind]), labels)
