"""The checks of one group of a registry, a small function for each fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.finding import Finding, FindingKind
from watchkeeper.model.audit.registry_view import Claim, Group, RegistryView, Topic
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.audit.target_assignment import Owners, order, steps
from watchkeeper.model.group.assignment import Assignor
from watchkeeper.model.group.variants import Unit
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths


@dataclass(slots=True)
class Case:
    """Everything known of a group while it is checked."""

    snapshot: Snapshot
    census: RegistryView
    group: Group
    owners: Owners
    plan: Owners | None
    assignor: Assignor
    claims: dict[Partition, list[Claim]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for claim in self.group.claims:
            self.claims.setdefault(claim.partition, []).append(claim)

    def wanted_topics(self) -> list[Topic]:
        """The topics that some stream wants and that are there."""
        wanted = {
            topic
            for member in self.group.members.values()
            for topic, streams in member.wanted.items()
            if streams > 0
        }
        return [self.census.topics[name] for name in sorted(wanted & set(self.census.topics))]


def findings_of(
    snapshot: Snapshot,
    census: RegistryView,
    group: Group,
    owners: Owners,
    plan: Owners | None,
    assignor: Assignor,
) -> list[Finding]:
    """Every finding on a group."""
    case = Case(snapshot, census, group, owners, plan, assignor)
    return [finding for look in LOOKS for finding in look(case)]


def _without_owner(case: Case) -> Iterator[Finding]:
    if case.group.unclear:
        return
    for topic in case.wanted_topics():
        for partition in topic.partitions():
            if partition in case.claims:
                continue
            due = case.plan.get(partition) if case.plan is not None else None
            why = f"a rebalance would give it to {due}" if due else "no member is to have it"
            yield Finding(
                FindingKind.NO_OWNER, f"{partition} has no owner; {why}", partition=str(partition)
            )


def _dead_claims(case: Case) -> Iterator[Finding]:
    for claim in case.group.claims:
        if claim.is_alive or not claim.holder:
            continue
        if not claim.session:
            why = "is no ephemeral, so it never goes by itself"
        elif claim.member is None:
            why = f"names {claim.holder}, and no such consumer is registered"
        else:
            registered = case.group.members[claim.member].session
            why = (
                f"names {claim.member} but belongs to session 0x{claim.session:x}, while that "
                f"consumer is registered by session 0x{registered:x}"
            )
        yield Finding(
            FindingKind.DEAD_CLAIM,
            f"the claim on {claim.partition} {why}",
            path=claim.path,
            partition=str(claim.partition),
            member=claim.holder,
        )


def _double_claims(case: Case) -> Iterator[Finding]:
    for partition, claims in case.claims.items():
        if len(claims) > 1:
            names = " and ".join(f"{claim.path} ({claim.holder})" for claim in claims)
            yield Finding(
                FindingKind.DOUBLE_CLAIM,
                f"{partition} is claimed under {len(claims)} names: {names}",
                path=claims[0].path,
                partition=str(partition),
            )


def _stray_claims(case: Case) -> Iterator[Finding]:
    there = {
        partition
        for name in {claim.partition.topic for claim in case.group.claims}
        if name in case.census.topics
        for partition in case.census.topics[name].partitions()
    }
    for claim in case.group.claims:
        topic = case.census.topics.get(claim.partition.topic)
        if topic is not None and topic.unclear:
            continue
        if claim.partition not in there:
            why = "which is not registered"
        elif not _is_unwanted(case, claim):
            continue
        else:
            why = "whose topic it does not want"
        yield Finding(
            FindingKind.STRAY_CLAIM,
            f"{claim.holder} claims {claim.partition}, {why}",
            path=claim.path,
            partition=str(claim.partition),
            member=claim.holder,
        )


def _is_unwanted(case: Case, claim: Claim) -> bool:
    if not claim.is_alive or claim.member is None or case.group.unclear:
        return False
    return case.group.members[claim.member].wanted.get(claim.partition.topic, 0) <= 0


def _idle_members(case: Case) -> Iterator[Finding]:
    owning = set(case.owners.values())
    for name in case.group.members:
        due = sum(heir == name for heir in (case.plan or {}).values())
        if due and name not in owning:
            message = (
                f"{name} owns nothing; a rebalance would give it {counted(due, 'partition')}"
            )
            yield Finding(FindingKind.IDLE_MEMBER, message, member=name)


def _imbalance(case: Case) -> Iterator[Finding]:
    if case.group.unclear or case.assignor.startswith("roundrobin"):
        return
    for topic in case.wanted_topics():
        partitions = topic.partitions()
        if any(
            len(case.claims.get(partition, ())) != 1 or partition not in case.owners
            for partition in partitions
        ):
            continue  # a missing or duplicate claim is the finding; the imbalance is its effect
        streams = {
            member.name: 1 if case.group.unit is Unit.CONSUMER else member.wanted[topic.name]
            for member in case.group.members.values()
            if member.wanted.get(topic.name, 0) > 0
        }
        least, extra = divmod(len(partitions), sum(streams.values()))
        for name, many in streams.items():
            has = sum(case.owners[partition] == name for partition in partitions)
            due = sum((case.plan or {}).get(partition) == name for partition in partitions)
            if has != due and not least * many <= has <= (least + bool(extra)) * many:
                message = (
                    f"{name} owns {has} of {counted(len(partitions), 'partition')} of "
                    f"{topic.name}; its fair share is {_range(least * many, extra and many)}"
                )
                yield Finding(FindingKind.IMBALANCE, message, member=name)


def _unsettled(case: Case) -> Iterator[Finding]:
    if case.plan is None:
        return
    moves = [step for step in steps(case.owners, case.plan) if step.is_move]
    if moves:
        shown = "; ".join(map(str, moves[:3]))
        more = f" and {len(moves) - 3} more" if len(moves) > 3 else ""
        yield Finding(
            FindingKind.UNSETTLED,
            f"a rebalance by {case.assignor} would move {counted(len(moves), 'partition')}: "
            f"{shown}{more}",
        )


def _without_broker(case: Case) -> Iterator[Finding]:
    for topic in case.wanted_topics():
        missing: dict[int | None, list[Partition]] = {}
        for partition in topic.partitions():
            broker = topic.broker_of(partition)
            if broker is None or f"{paths.broker(broker)}" not in case.snapshot.nodes:
                missing.setdefault(broker, []).append(partition)
        for broker, partitions in missing.items():
            names = ", ".join(partition.name for partition in partitions[:5])
            more = f" and {len(partitions) - 5} more" if len(partitions) > 5 else ""
            what = "has no leader" if broker is None else f"is on broker {broker}, not registered"
            yield Finding(
                FindingKind.NO_BROKER,
                f"{topic.name} {names}{more} {what}",
                partition=str(partitions[0]),
            )


def _payloads(case: Case) -> Iterator[Finding]:
    for path, message in case.census.bad:
        if paths.group_of(path) == case.group.name:
            yield Finding(FindingKind.BAD_PAYLOAD, message, path=path)


def _permanent(case: Case) -> Iterator[Finding]:
    for member in case.group.members.values():
        if not member.session:
            path = paths.member(case.group.name, member.name)
            message = f"{path} is no ephemeral, so {member.name} keeps its share when it dies"
            yield Finding(FindingKind.PERMANENT, message, path=path, member=member.name)


LOOKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    _without_owner,
    _dead_claims,
    _double_claims,
    _stray_claims,
    _idle_members,
    _imbalance,
    _unsettled,
    _without_broker,
    _payloads,
    _permanent,
)


# --- worth knowing, and no fault -------------------------------------------------------


def notes_of(
    census: RegistryView, group: Group, owners: Owners, plan: Owners | None
) -> list[str]:
    """The notes on a group."""
    notes = list(group.unclear)
    if not group.members:
        many = counted(len(group.offsets), "partition")
        return [f"no member is registered; offsets of {many} are kept"]
    wanted = {topic for member in group.members.values() for topic in member.wanted}
    notes += [
        f"{name} is wanted, and no such topic is registered"
        for name in sorted(wanted - set(census.topics))
    ]
    for name in sorted(wanted & set(census.topics)):
        if census.topics[name].is_mixed:
            notes.append(
                f"{name} is registered in both layouts; members of one release do not see the "
                "claims of the other"
            )
    for member in group.members.values():
        if plan is not None and member.name not in {*plan.values(), *owners.values()}:
            why = "there is no partition left for it" if member.wanted else "it wants no topic"
            notes.append(f"{member.name} owns nothing: {why}")
    lonely = sorted(
        (offset for offset in group.offsets if not _is_owned(census, owners, offset)), key=order
    )
    if lonely:
        shown = ", ".join(map(str, lonely[:5]))
        more = f" and {len(lonely) - 5} more" if len(lonely) > 5 else ""
        notes.append(f"offsets are kept of partitions without an owner: {shown}{more}")
    return notes


def _is_owned(census: RegistryView, owners: Owners, partition: Partition) -> bool:
    topic = census.topics.get(partition.topic)
    return (partition if topic is None else topic.canonical(partition)) in owners


def _range(least: int, extra: int) -> str:
    return f"{least} to {least + extra}" if extra else str(least)
