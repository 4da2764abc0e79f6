"""What is amiss in a registry: a pure function from a snapshot to findings.

A *finding* is a fault: something that a healthy group at rest never shows. A *note* is
worth knowing and no fault. A group of which not all could be read, or which changed while
it was read, is *unknown*: what was found of it may never have stood there together.

A registry cannot show everything. A member whose process is dead is alive in it until
ZooKeeper ends its session, and a member that has claimed a partition may yet not fetch it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from model import registry
from model.assignment import Assignor, UnequalSubscriptions
from model.census import Census, Group, take
from model.findings import Finding, findings_of, notes_of
from model.intended import Owners, Step, connections, intended, owners_now, steps
from model.patience import Patience
from model.snapshot import Snapshot
from model.verdicts import Verdict


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
    """What was found of one group."""

    name: str
    group: Group
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    owners: Owners = field(default_factory=dict)
    plan: Owners | None = None
    """Who would own what after a rebalance now; None where that cannot be computed."""
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
        """How many partitions a rebalance would take from one member and give to another."""
        return sum(one.is_move for one in self.diff)


@dataclass(slots=True)
class Audit:
    """What was found of everything."""

    snapshot: Snapshot
    census: Census
    assignor: Assignor
    groups: list[GroupAudit]
    findings: list[Finding] = field(default_factory=list)
    """Those that belong to no group."""
    notes: list[str] = field(default_factory=list)

    @property
    def doubts(self) -> list[str]:
        """Why what was read of the brokers and topics is not certain."""
        return self.snapshot.doubts(None)

    @property
    def verdict(self) -> Verdict:
        """Violated if anything is for certain; else unknown if anything is not known."""
        verdicts = {one.verdict for one in self.groups}
        if self.doubts:
            verdicts.add(Verdict.UNKNOWN)
        if self.findings and (not self.doubts or any(one.is_sure for one in self.findings)):
            verdicts.add(Verdict.VIOLATED)
        for worst in (Verdict.VIOLATED, Verdict.UNKNOWN):
            if worst in verdicts:
                return worst
        return Verdict.HOLDS


def audit(
    snapshot: Snapshot, *, assignor: Assignor = "range", patience: Patience | None = None
) -> Audit:
    """Look for what is amiss."""
    census = take(snapshot)
    groups = [_audit_group(snapshot, census, group, assignor) for group in census.groups.values()]
    done = Audit(snapshot, census, assignor, groups)
    for path, said in census.bad:
        if registry.group_of(path) is None:
            done.findings.append(Finding("bad payload", said, path=path))
    for broker in snapshot.children(registry.BROKER_IDS):
        path = f"{registry.BROKER_IDS}/{broker}"
        if not snapshot.nodes[path].session:
            done.findings.append(
                Finding(
                    "permanent registration",
                    f"{path} is no ephemeral, so broker {broker} stays registered when it dies",
                    path=path,
                )
            )
    if patience is not None:
        short, note = patience.judge()
        done.findings += [Finding("short patience", short, is_sure=True)] if short else []
        done.notes += [note] if note else []
    return done


def _audit_group(
    snapshot: Snapshot, census: Census, group: Group, assignor: Assignor
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
        done.findings.append(Finding("no plan", f"no rebalance can succeed: {refused}"))
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


def _topic_rows(census: Census, done: GroupAudit) -> list[TopicRow]:
    wanted = {topic for one in done.group.members.values() for topic in one.wanted}
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
                sum(one in done.owners for one in partitions),
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
