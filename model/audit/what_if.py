"""What would happen to a group if a broker or a consumer went, or consumers came.

  broker/2            a broker, by its id
  consumer/NAME       a consumer, by its id or by a part of it that no other has
  2 consumers         so many newcomers that want what most of the members want

The change is made to what was read, the assignment is computed anew, and the two are laid
side by side. Nothing is written anywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from model.assignment import Assignor
from model.census import Census, Group, Registered, Topic
from model.intended import Owners, Step, connections, intended, steps


class BadChange(ValueError):
    """A change was asked for that is not understood, or of what is not there."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a change would lead to."""

    changes: tuple[str, ...]
    plan: Owners
    diff: tuple[Step, ...]
    """From who owns what now."""
    connections: tuple[tuple[str, int, int], ...]
    """Topic, connections to brokers, and the fewest there could be."""
    notes: tuple[str, ...]

    @property
    def moves(self) -> int:
        """How many partitions would pass from one member to another."""
        return sum(one.is_move for one in self.diff)


def what_if(
    census: Census,
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


def _take_away(census: Census, group: Group, text: str, notes: list[str]) -> str:
    kind, slash, name = text.strip().partition("/")
    if not slash or kind not in ("broker", "consumer") or not name:
        raise BadChange(f"--without {text!r} is not understood; write broker/ID or consumer/ID")
    if kind == "broker":
        return _take_broker(census, name, notes)
    found = [one for one in group.members if one == name]
    found = found or [one for one in group.members if name in one]
    if len(found) != 1:
        there = ", ".join(group.members) or "none"
        many = "several consumers have" if found else "no consumer has"
        raise BadChange(f"{many} {name!r} in their id in group {group.name}; there are {there}")
    del group.members[found[0]]
    return f"consumer {found[0]}"


def _take_broker(census: Census, name: str, notes: list[str]) -> str:
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


def _without_broker(topic: Topic, gone: int, census: Census, notes: list[str]) -> Topic:
    """0.7: its partitions go with it. 0.8: another replica leads, if there is one."""
    leaders = dict(topic.leaders)
    for index, replicas in topic.replicas.items():
        if leaders.get(index, next(iter(replicas), -1)) != gone:
            continue
        heirs = [one for one in replicas if one != gone and one in census.brokers]
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
    common = Counter(tuple(sorted(one.wanted.items())) for one in group.members.values())
    [(wanted, _)] = common.most_common(1)
    for _ in range(int(found[1])):
        name = f"~new-{len(group.members)}"
        group.members[name] = Registered(name, 0, dict(wanted))
    if len(common) > 1:
        notes.append("members want different things; newcomers want what most of them want")
    notes.append("newcomers are taken to sort last; where ids sort decides what moves")
    return f"{found[1]} consumer{'' if found[1] == '1' else 's'}"
