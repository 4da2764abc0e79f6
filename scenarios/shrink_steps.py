"""Shrink steps: scenarios that are smaller by an entry, a member, a broker, or some time.

They are built from the plain fields of a scenario file and need not be valid: the caller
tries them. The steps that remove most come first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from watchkeeper.model.plan.faults import VERBS
from watchkeeper.scenarios.text.units import duration_text, parse_duration

Fields = dict[str, Any]
Rename = Callable[[str], str | None]
"""The new name for a name; None if the thing it names is removed."""

UNNEEDED = ("expect", "bounds", "schedule", "worlds", "sweep", "sometimes")
"""Fields that do not change what happens in a run."""
NAMING = ("from", "to")
"""Options of an entry that may hold a name."""
LASTING = ("for", "unknown", "lands_after")
SHORTEST_US = 500_000
"""The least duration that a step produces; durations are multiples of it."""
ONE = 1


def bare(fields: Fields) -> Fields:
    """A scenario without the fields that do not change its runs."""
    return {key: value for key, value in copy.deepcopy(fields).items() if key not in UNNEEDED}


def smaller(fields: Fields) -> Iterator[Fields]:
    """Scenarios that are a step smaller."""
    for steps in STEPS:
        yield from steps(fields)


# --- fewer entries ---------------------------------------------------------------------


def _fewer_entries(fields: Fields) -> Iterator[Fields]:
    """Without half of the timeline, a quarter, ..., one entry; without one `never` clause."""
    for key in ("timeline", "never"):
        entries = fields.get(key, [])
        size = len(entries)
        while size:
            for first in range(0, len(entries), size):
                yield {**fields, key: entries[:first] + entries[first + size :]}
            size //= 2
    targets = {target for entry in fields.get("timeline", []) for target in _targets(entry)}
    for target in sorted(targets):
        yield _renamed(fields, _without_any({target}))


def _targets(entry: Fields) -> Iterator[str]:
    """The names in an entry."""
    for key, value in entry.items():
        if (key in VERBS or key in NAMING) and isinstance(value, str):
            yield value
    if isinstance(entry.get("on"), dict):
        yield entry["on"]["node"]


def _renamed(fields: Fields, rename: Rename) -> Fields:
    """The same scenario with other names, without entries whose names are removed."""
    made = copy.deepcopy(fields)
    for key in ("timeline", "never"):
        entries = [_entry_renamed(entry, rename) for entry in made.get(key, [])]
        if key in made:
            made[key] = [entry for entry in entries if entry is not None]
    return made


def _entry_renamed(entry: Fields, rename: Rename) -> Fields | None:
    for key, value in entry.items():
        is_name = key in VERBS or key in NAMING or key == "node"
        if is_name and isinstance(value, str):
            entry[key] = rename(value)
        elif key == "on" and isinstance(value, dict):
            value["node"] = rename(value["node"])
    named = [entry.get(key) for key in entry if key in VERBS or key in (*NAMING, "node")]
    gone = None in named or (isinstance(entry.get("on"), dict) and entry["on"]["node"] is None)
    return None if gone else entry


def _members_renamed(fields: Fields, rename: Rename) -> Fields:
    """The same scenario with other members, in its entries and in its processes."""
    made = _renamed(fields, rename)
    for process, members in fields.get("processes", {}).items():
        names = [rename(member) for member in members]
        made = _with_members(made, process, [name for name in names if name is not None])
    return made


def _with_members(fields: Fields, process: str, members: Sequence[str]) -> Fields:
    """With other members in a process. The entries of a process of one name its member."""
    if len(members) > ONE:
        return _with(fields, ("processes", process), list(members))
    alone = members[0] if members else None
    made = _renamed(fields, lambda name: alone if name == process else name)
    del made["processes"][process]
    return made


# --- fewer groups and members ----------------------------------------------------------


def _fewer_groups(fields: Fields) -> Iterator[Fields]:
    """Without one group; without one cluster and its groups."""
    groups, clusters = fields.get("groups", {}), fields["clusters"]
    for name in groups if len(groups) > ONE else ():
        left = {key: value for key, value in groups.items() if key != name}
        yield _members_renamed({**fields, "groups": left}, _without(f"{name}/"))
    for name in clusters if len(clusters) > ONE else ():
        kept = {key: value for key, value in clusters.items() if key != name}
        left = {key: value for key, value in groups.items() if value.get("cluster") != name}
        gone = (f"{name}:", *(f"{group}/" for group in groups.keys() - left.keys()))
        made = {**fields, "clusters": kept, "groups": left}
        made = _members_renamed(made, _without(*gone))
        if len(kept) == ONE:
            made = _members_renamed(made, _without_prefix(f"{next(iter(kept))}:"))
        yield made


def _without(*prefixes: str) -> Rename:
    return lambda name: None if name.startswith(prefixes) else name


def _without_any(gone: set[str]) -> Rename:
    return lambda name: None if name in gone else name


def _without_prefix(prefix: str) -> Rename:
    return lambda name: name.removeprefix(prefix)


def _fewer_members(fields: Fields) -> Iterator[Fields]:
    """With fewer consumers in a group."""
    for name, group in fields.get("groups", {}).items():
        consumers = group["consumers"]
        number = consumers if isinstance(consumers, int) else len(consumers)
        for first, size in _parts(number):
            made = _members_renamed(fields, _counted_down(f"{name}/", first, size))
            made["groups"][name]["consumers"] = _taken(consumers, first, size)
            yield made


def _parts(number: int) -> Iterator[tuple[int, int]]:
    """The parts to remove from a number: the last half, the last quarter,
    ..., each single one."""
    size = number // 2
    while size > ONE:
        yield number - size, size
        size //= 2
    if number > ONE:
        yield from ((at, ONE) for at in reversed(range(number)))


def _taken(given: Any, first: int, size: int) -> Any:
    if isinstance(given, int):
        return given - size
    return [*given[:first], *given[first + size :]]


def _counted_down(prefix: str, first: int, size: int) -> Rename:
    """Renames the members after a removed range: each moves up."""

    def rename(name: str) -> str | None:
        number = name.removeprefix(prefix)
        if number == name or not number.isdecimal() or int(number) < first:
            return name
        return None if int(number) < first + size else f"{prefix}{int(number) - size}"

    return rename


def _fewer_shared(fields: Fields) -> Iterator[Fields]:
    """With a member fewer in a process; that member runs alone."""
    for process, members in fields.get("processes", {}).items():
        for alone in members:
            yield _with_members(fields, process, [name for name in members if name != alone])


# --- fewer brokers, partitions, servers ------------------------------------------------


def _fewer_brokers(fields: Fields) -> Iterator[Fields]:
    """With fewer brokers, and with fewer servers."""
    for name, cluster in fields["clusters"].items():
        prefix = f"{name}:" if len(fields["clusters"]) > ONE else ""
        brokers = cluster.get("brokers", 3)
        number = brokers if isinstance(brokers, int) else len(brokers)
        for first, size in _parts(number):
            if isinstance(brokers, int):
                made = _members_renamed(fields, _counted_down(f"{prefix}broker/", first, size))
            else:
                gone = {
                    f"{prefix}broker/{_name(broker)}" for broker in brokers[first : first + size]
                }
                made = _members_renamed(fields, _without_any(gone))
            made["clusters"][name]["brokers"] = _taken(brokers, first, size)
            yield made
        servers = cluster.get("zookeeper", {}).get("servers", 3)
        for fewer in range(ONE, servers, 2):
            yield _with(fields, ("clusters", name, "zookeeper", "servers"), fewer)


def _name(broker: Fields) -> Any:
    return broker.get("name") or broker["id"]


def _fewer_parts(fields: Fields) -> Iterator[Fields]:
    """Without a topic; with fewer partitions, copies and streams."""
    for name, cluster in fields["clusters"].items():
        topics = cluster["topics"]
        for topic in topics if len(topics) > ONE else ():
            yield _without_topic(fields, name, topic)
        for topic, settings in topics.items():
            for key in ("partitions", "partitions_per_broker", "replicas"):
                for fewer in _halves(settings.get(key, ONE)):
                    yield _with(fields, ("clusters", name, "topics", topic, key), fewer)
    for name, group in fields.get("groups", {}).items():
        for topic, streams in (group.get("streams") or {}).items():
            for fewer in _halves(streams):
                yield _with(fields, ("groups", name, "streams", topic), fewer)


def _halves(number: int) -> Iterator[int]:
    """One, half, one less."""
    yield from dict.fromkeys(
        candidate for candidate in (ONE, number // 2, number - 1) if 0 < candidate < number
    )


def _without_topic(fields: Fields, cluster: str, topic: str) -> Fields:
    """Without a topic, and without the subscriptions to it."""
    made = _renamed(
        fields, lambda name: None if name == topic or name.startswith(f"{topic}/") else name
    )
    del made["clusters"][cluster]["topics"][topic]
    for group in made.get("groups", {}).values():
        members = group["consumers"] if isinstance(group["consumers"], list) else []
        for part in (group, *members):
            (part.get("streams") or {}).pop(topic, None)
    return made


def _with(fields: Fields, path: tuple[str, ...], value: Any) -> Fields:
    made = copy.deepcopy(fields)
    inner = made
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    return made


# --- shorter ---------------------------------------------------------------------------


def _shorter(fields: Fields) -> Iterator[Fields]:
    """With a shorter settle time, shorter faults, less time between entries."""
    for us in _less(parse_duration(fields.get("settle", "10s"))):
        yield {**fields, "settle": duration_text(us)}
    timeline = fields.get("timeline", [])
    for at, entry in enumerate(timeline):
        for key in LASTING:
            for us in _less(parse_duration(entry[key])) if key in entry else ():
                changed = {**entry, key: duration_text(us)}
                yield {**fields, "timeline": [*timeline[:at], changed, *timeline[at + 1 :]]}
    moments = sorted({0, *(parse_duration(entry["at"]) for entry in timeline if "at" in entry)})
    for before, after in pairwise(moments):
        for gap in _less(after - before):
            yield _sooner(fields, after, after - before - gap)


def _less(us: int) -> Iterator[int]:
    """A quarter of a duration, half of it, a little less."""
    steps = us // SHORTEST_US
    fewer = dict.fromkeys((steps // 4, steps // 2, steps * 3 // 4, steps - 1))
    yield from (units * SHORTEST_US for units in fewer if 0 < units * SHORTEST_US < us)


def _sooner(fields: Fields, from_us: int, by_us: int) -> Fields:
    """With every entry from a moment on earlier by a duration."""
    made = copy.deepcopy(fields)
    for entry in made["timeline"]:
        at_us = parse_duration(entry["at"]) if "at" in entry else 0
        if at_us >= from_us > 0:
            entry["at"] = duration_text(at_us - by_us)
    return made


STEPS: tuple[Callable[[Fields], Iterator[Fields]], ...] = (
    _fewer_entries,
    _fewer_groups,
    _fewer_members,
    _fewer_shared,
    _fewer_brokers,
    _fewer_parts,
    _shorter,
)
"""What makes a scenario smaller, in the order in which it is tried."""
