"""The audit of a registry: a pure function from a snapshot to findings.

A *finding* is a fault: something that a healthy group at rest never shows. A *note* is
information, not a fault. A group that could not be read completely, or that changed while it
was read, is *unknown*: its findings may never have existed at the same moment.

A registry does not show everything. A member whose process is dead is alive in it until
ZooKeeper ends its session, and a member that has claimed a partition may not fetch it yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from watchkeeper.model.audit.checks import findings_of, notes_of
from watchkeeper.model.audit.control_plane import ControlPlane, read_control_plane
from watchkeeper.model.audit.control_plane_checks import control_findings, control_notes
from watchkeeper.model.audit.finding import Finding, FindingKind
from watchkeeper.model.audit.payload_versions import version_findings
from watchkeeper.model.audit.registry_view import Group, RegistryView, take
from watchkeeper.model.audit.retry_budget import RetryBudget
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.audit.target_assignment import (
    Owners,
    Step,
    connections,
    intended,
    owners_now,
    steps,
)
from watchkeeper.model.group.assignment import Assignor, UnequalSubscriptions
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.registry import paths as registry


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member: how many partitions it owns, and how many a rebalance would give it."""

    name: str
    session: int
    streams: dict[str, int]
    owns: int
    planned: int | None


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic that a group reads."""

    name: str
    layout: str
    partitions: int
    owned: int
    brokers: int
    connections: int
    least_connections: int


@dataclass(slots=True)
class GroupAudit:
    """The audit of one group."""

    name: str
    group: Group
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    owners: Owners = field(default_factory=dict)
    plan: Owners | None = None
    """Partition -> owner after a rebalance now; None if that cannot be computed."""
    diff: list[Step] = field(default_factory=list)
    members: list[MemberRow] = field(default_factory=list)
    topics: list[TopicRow] = field(default_factory=list)
    changed_ms: int = 0
    """When the newest registration or claim was made, by the clock of ZooKeeper's leader."""

    @property
    def verdict(self) -> Verdict:
        """Whether the group is well."""
        if self.doubts:
            return Verdict.UNKNOWN
        if self.findings:
            return Verdict.VIOLATED
        return Verdict.UNKNOWN if self.group.unclear else Verdict.HOLDS

    @property
    def moves(self) -> int:
        """The number of partitions that a rebalance would move between members."""
        return sum(change.is_move for change in self.diff)


@dataclass(slots=True)
class Audit:
    """The audit of a whole registry."""

    snapshot: Snapshot
    census: RegistryView
    control: ControlPlane
    assignor: Assignor
    groups: list[GroupAudit]
    findings: list[Finding] = field(default_factory=list)
    """Those that belong to no group."""
    notes: list[str] = field(default_factory=list)

    @property
    def doubts(self) -> list[str]:
        """The reasons why the data on brokers and topics is uncertain."""
        return self.snapshot.doubts(None)

    @property
    def verdict(self) -> Verdict:
        """Violated if a finding is certain; else unknown if anything is uncertain."""
        verdicts = {group.verdict for group in self.groups}
        if self.doubts:
            verdicts.add(Verdict.UNKNOWN)
        if self.findings and (
            not self.doubts or any(finding.is_sure for finding in self.findings)
        ):
            verdicts.add(Verdict.VIOLATED)
        for worst in (Verdict.VIOLATED, Verdict.UNKNOWN):
            if worst in verdicts:
                return worst
        return Verdict.HOLDS


def audit(
    snapshot: Snapshot, *, assignor: Assignor = "range", patience: RetryBudget | None = None
) -> Audit:
    """Audit a registry."""
    census = take(snapshot)
    groups = [_audit_group(snapshot, census, group, assignor) for group in census.groups.values()]
    done = Audit(snapshot, census, read_control_plane(snapshot), assignor, groups)
    for path, message in census.bad:
        if registry.group_of(path) is None:
            done.findings.append(Finding(FindingKind.BAD_PAYLOAD, message, path=path))
    for broker in snapshot.children(registry.BROKER_IDS):
        path = f"{registry.BROKER_IDS}/{broker}"
        if not snapshot.nodes[path].session:
            done.findings.append(
                Finding(
                    FindingKind.PERMANENT,
                    f"{path} is no ephemeral, so broker {broker} stays registered when it dies",
                    path=path,
                )
            )
    done.findings += version_findings(snapshot)
    done.findings += control_findings(done.control)
    done.notes += control_notes(done.control)
    if patience is not None:
        short, note = patience.judge()
        done.findings += (
            [Finding(FindingKind.SHORT_PATIENCE, short, is_sure=True)] if short else []
        )
        done.notes += [note] if note else []
    return done


def _audit_group(
    snapshot: Snapshot, census: RegistryView, group: Group, assignor: Assignor
) -> GroupAudit:
    done = GroupAudit(group.name, group, doubts=snapshot.doubts(group.name))
    done.owners = owners_now(group)
    refused = ""
    if not group.unclear:
        try:
            done.plan = intended(census, group, assignor)
            done.diff = steps(done.owners, done.plan)
        except UnequalSubscriptions as error:
            refused = str(error)
    done.findings = findings_of(snapshot, census, group, done.owners, done.plan, assignor)
    if refused:
        done.findings.append(Finding(FindingKind.NO_PLAN, f"no rebalance can succeed: {refused}"))
    done.notes = notes_of(census, group, done.owners, done.plan)
    done.members = _member_rows(done)
    done.topics = _topic_rows(census, done)
    done.changed_ms = _changed_ms(snapshot, group)
    return done


def _member_rows(done: GroupAudit) -> list[MemberRow]:
    owned, planned = list(done.owners.values()), list((done.plan or {}).values())
    return [
        MemberRow(
            member.name,
            member.session,
            member.wanted,
            owned.count(member.name),
            None if done.plan is None else planned.count(member.name),
        )
        for member in done.group.members.values()
    ]


def _topic_rows(census: RegistryView, done: GroupAudit) -> list[TopicRow]:
    wanted = {topic for member in done.group.members.values() for topic in member.wanted}
    rows = []
    for name in sorted(wanted & set(census.topics)):
        topic = census.topics[name]
        partitions = topic.partitions()
        pairs, least, brokers = connections(topic, done.owners)
        rows.append(
            TopicRow(
                name,
                "0.7 and 0.8" if topic.is_mixed else topic.layout,
                len(partitions),
                sum(partition in done.owners for partition in partitions),
                brokers,
                pairs,
                least,
            )
        )
    return rows


def _changed_ms(snapshot: Snapshot, group: Group) -> int:
    paths = [registry.member(group.name, name) for name in group.members]
    paths += [claim.path for claim in group.claims]
    return max((snapshot.nodes[path].stat.ctime for path in paths), default=0)
