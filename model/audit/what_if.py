"""The effect on a group if a broker or a consumer leaves, or consumers join.

    broker/2            a broker, by its id
    consumer/NAME       a consumer, by its id or by a unique part of it
    2 consumers         this many new consumers, subscribed like most of the members

The change is made to the snapshot, the assignment is computed again, and both are compared.
Nothing is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from watchkeeper.model.audit.registry_view import Group, Registered, RegistryView, Topic
from watchkeeper.model.audit.target_assignment import Owners, Step, connections, intended, steps
from watchkeeper.model.group.assignment import Assignor


class BadChange(ValueError):
    """A change that cannot be parsed, or that names something that does not exist."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The effect of a change."""

    changes: tuple[str, ...]
    plan: Owners
    diff: tuple[Step, ...]
    """The steps from the present owners."""
    connections: tuple[tuple[str, int, int], ...]
    """Topic, connections to brokers, and the fewest there could be."""
    notes: tuple[str, ...]

    @property
    def moves(self) -> int:
        """The number of partitions that would move between members."""
        return sum(change.is_move for change in self.diff)


def what_if(
    census: RegistryView,
    group: Group,
    owners: Owners,
    assignor: Assignor,
    without: Iterable[str],
    joining: Iterable[str],
) -> WhatIf:
    """Compute it. Raises BadChange, and UnequalSubscriptions where no plan can be made."""
    changed = replace(census, brokers=dict(census.brokers), topics=dict(census.topics))
    after = replace(group, members=dict(group.members))
    notes: list[str] = []
    changes = []
    for text in without:
        changes.append(f"without {_take_away(changed, after, text, notes)}")
    for text in joining:
        changes.append(f"with {_add(after, text, notes)}")
    plan = intended(changed, after, assignor)
    wanted = {topic for member in after.members.values() for topic in member.wanted}
    counted = [
        (name, *connections(changed.topics[name], plan)[:2])
        for name in sorted(wanted & set(changed.topics))
    ]
    return WhatIf(tuple(changes), plan, tuple(steps(owners, plan)), tuple(counted), tuple(notes))


def _take_away(census: RegistryView, group: Group, text: str, notes: list[str]) -> str:
    kind, slash, name = text.strip().partition("/")
    if not slash or kind not in ("broker", "consumer") or not name:
        raise BadChange(f"--without {text!r} is not understood; write broker/ID or consumer/ID")
    if kind == "broker":
        return _take_broker(census, name, notes)
    found = [member for member in group.members if member == name]
    found = found or [member for member in group.members if name in member]
    if len(found) != 1:
        there = ", ".join(group.members) or "none"
        many = "several consumers have" if found else "no consumer has"
        raise BadChange(f"{many} {name!r} in their id in group {group.name}; there are {there}")
    del group.members[found[0]]
    return f"consumer {found[0]}"


def _take_broker(census: RegistryView, name: str, notes: list[str]) -> str:
    homes = {broker for topic in census.topics.values() for broker in _brokers_of(topic)}
    if not name.isdecimal() or int(name) not in {*census.brokers, *homes}:
        there = ", ".join(map(str, sorted(census.brokers))) or "none"
        raise BadChange(f"broker {name!r} is not registered; registered brokers: {there}")
    gone = int(name)
    census.brokers.pop(gone, None)
    for topic in list(census.topics.values()):
        census.topics[topic.name] = _without_broker(topic, gone, census, notes)
    return f"broker {gone}"


def _brokers_of(topic: Topic) -> set[int]:
    return {*topic.counts, *topic.leaders.values()} | {
        broker for brokers in topic.replicas.values() for broker in brokers
    }


def _without_broker(topic: Topic, gone: int, census: RegistryView, notes: list[str]) -> Topic:
    """0.7: its partitions go with it. 0.8: another replica leads, if there is one."""
    leaders = dict(topic.leaders)
    for index, replicas in topic.replicas.items():
        if leaders.get(index, next(iter(replicas), -1)) != gone:
            continue
        heirs = [broker for broker in replicas if broker != gone and broker in census.brokers]
        leaders[index] = heirs[0] if heirs else -1
        if not heirs:
            notes.append(f"{topic.name}/{index} would have no leader: no other replica is there")
    counts = {broker: count for broker, count in topic.counts.items() if broker != gone}
    return replace(topic, counts=counts, leaders=leaders)


def _add(group: Group, text: str, notes: list[str]) -> str:
    found = re.fullmatch(r"\s*(\d{1,4})\s+consumers?\s*", text)
    if found is None:
        raise BadChange(f"--with {text!r} is not understood; write a number, as in '2 consumers'")
    if not group.members:
        raise BadChange(
            f"group {group.name} has no member, so what a newcomer would want is not known"
        )
    common = Counter(tuple(sorted(member.wanted.items())) for member in group.members.values())
    [(wanted, _)] = common.most_common(1)
    for _ in range(int(found[1])):
        name = f"~new-{len(group.members)}"
        group.members[name] = Registered(name, 0, dict(wanted))
    if len(common) > 1:
        notes.append("members want different things; newcomers want what most of them want")
    notes.append("newcomers are taken to sort last; where ids sort decides what moves")
    return f"{found[1]} consumer{'' if found[1] == '1' else 's'}"
