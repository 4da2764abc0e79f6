"""The faults that one group of a registry can show, each found by a small function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from model import registry
from model.asks import Partition
from model.assignment import Assignor
from model.census import Census, Claim, Group, Topic
from model.intended import Owners, order, steps
from model.snapshot import Snapshot
from model.verdicts import counted

KINDS = {
    "no owner": "a partition that a member wants has no claim",
    "dead claim": "a claim whose session is not that of the member it names, or names nobody",
    "double claim": "one partition is claimed under several names",
    "stray claim": "a claim on what is not there, or by a member that does not want it",
    "idle member": "a member owns nothing, though a rebalance would give it something",
    "imbalance": "the partitions of a topic are all owned, but shared out unevenly",
    "unsettled": "owners are not those that a rebalance would make",
    "no plan": "the assignor refuses the subscriptions as they are",
    "no broker": "the broker of a partition is not registered",
    "bad payload": "a znode holds what its place does not ask for",
    "permanent registration": "a registration that does not go with its session",
    "short patience": "the attempts of a rebalance are over before a session ends",
}
"""Kind of finding -> what it means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is amiss."""

    kind: str
    said: str
    path: str = ""
    partition: str = ""
    member: str = ""
    is_sure: bool = False
    """Whether it holds whatever else could not be read."""


@dataclass(slots=True)
class Case:
    """All that is known of a group while it is judged."""

    snapshot: Snapshot
    census: Census
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
    census: Census,
    group: Group,
    owners: Owners,
    plan: Owners | None,
    assignor: Assignor,
) -> list[Finding]:
    """Everything that is amiss with a group."""
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
            why = f"a rebalance would give it to {due}" if due else "nobody is to have it"
            yield Finding(
                "no owner", f"{partition} has no owner; {why}", partition=str(partition)
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
            "dead claim",
            f"the claim on {claim.partition} {why}",
            path=claim.path,
            partition=str(claim.partition),
            member=claim.holder,
        )


def _double_claims(case: Case) -> Iterator[Finding]:
    for partition, claims in case.claims.items():
        if len(claims) > 1:
            names = " and ".join(f"{one.path} ({one.holder})" for one in claims)
            yield Finding(
                "double claim",
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
            "stray claim",
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
        due = sum(one == name for one in (case.plan or {}).values())
        if due and name not in owning:
            said = f"{name} owns nothing; a rebalance would give it {counted(due, 'partition')}"
            yield Finding("idle member", said, member=name)


def _imbalance(case: Case) -> Iterator[Finding]:
    if case.group.unclear or case.assignor.startswith("roundrobin"):
        return
    for topic in case.wanted_topics():
        partitions = topic.partitions()
        if any(
            len(case.claims.get(one, ())) != 1 or one not in case.owners for one in partitions
        ):
            continue  # what is missing or twice there is the finding, and unevenness its effect
        streams = {
            member.name: 1 if case.group.unit == "consumer" else member.wanted[topic.name]
            for member in case.group.members.values()
            if member.wanted.get(topic.name, 0) > 0
        }
        least, extra = divmod(len(partitions), sum(streams.values()))
        for name, many in streams.items():
            has = sum(case.owners[one] == name for one in partitions)
            due = sum((case.plan or {}).get(one) == name for one in partitions)
            if has != due and not least * many <= has <= (least + bool(extra)) * many:
                said = (
                    f"{name} owns {has} of {counted(len(partitions), 'partition')} of "
                    f"{topic.name}; its fair share is {_range(least * many, extra and many)}"
                )
                yield Finding("imbalance", said, member=name)


def _unsettled(case: Case) -> Iterator[Finding]:
    if case.plan is None:
        return
    moves = [one for one in steps(case.owners, case.plan) if one.is_move]
    if moves:
        shown = "; ".join(map(str, moves[:3]))
        more = f" and {len(moves) - 3} more" if len(moves) > 3 else ""
        yield Finding(
            "unsettled",
            f"a rebalance by {case.assignor} would move {counted(len(moves), 'partition')}: "
            f"{shown}{more}",
        )


def _without_broker(case: Case) -> Iterator[Finding]:
    for topic in case.wanted_topics():
        missing: dict[int | None, list[Partition]] = {}
        for partition in topic.partitions():
            broker = topic.broker_of(partition)
            if broker is None or f"{registry.broker(broker)}" not in case.snapshot.nodes:
                missing.setdefault(broker, []).append(partition)
        for broker, partitions in missing.items():
            names = ", ".join(one.name for one in partitions[:5])
            more = f" and {len(partitions) - 5} more" if len(partitions) > 5 else ""
            what = "has no leader" if broker is None else f"is on broker {broker}, not registered"
            yield Finding(
                "no broker", f"{topic.name} {names}{more} {what}", partition=str(partitions[0])
            )


def _payloads(case: Case) -> Iterator[Finding]:
    for path, said in case.census.bad:
        if registry.group_of(path) == case.group.name:
            yield Finding("bad payload", said, path=path)


def _permanent(case: Case) -> Iterator[Finding]:
    for member in case.group.members.values():
        if not member.session:
            path = registry.member(case.group.name, member.name)
            said = f"{path} is no ephemeral, so {member.name} keeps its share when it dies"
            yield Finding("permanent registration", said, path=path, member=member.name)


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


def notes_of(census: Census, group: Group, owners: Owners, plan: Owners | None) -> list[str]:
    """What is worth knowing of a group."""
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
        (one for one in group.offsets if not _is_owned(census, owners, one)), key=order
    )
    if lonely:
        shown = ", ".join(map(str, lonely[:5]))
        more = f" and {len(lonely) - 5} more" if len(lonely) > 5 else ""
        notes.append(f"offsets are kept where nobody owns the partition: {shown}{more}")
    return notes


def _is_owned(census: Census, owners: Owners, partition: Partition) -> bool:
    topic = census.topics.get(partition.topic)
    return (partition if topic is None else topic.canonical(partition)) in owners


def _range(least: int, extra: int) -> str:
    return f"{least} to {least + extra}" if extra else str(least)
