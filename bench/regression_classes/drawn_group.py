"""A cluster and a group, drawn for one variant, and the changes that a timeline makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from bench.regression_classes.runs import Fields, ms

from watchkeeper.model.group.variants import FetchErrors, Variant, WatchedFilters, WatchedPaths

NAMES = ("clicks", "orders", "users", "views")
LATER = "later"
"""The topic that a timeline creates."""
STRATEGIES = ("range", "roundrobin", "roundrobin_11")


@dataclass(slots=True)
class Drawn:
    """A cluster and a group while they are drawn."""

    variant: Variant
    layout: str
    brokers: int
    topics: dict[str, int]
    """Topic -> number of partitions at the end, of each broker (0.7) or in all (0.8)."""
    at_first: dict[str, int]
    """The same before the timeline creates a topic or adds partitions."""
    strategy: str
    members: list[Fields]
    running: set[str]
    """The members that run at the end."""
    timeline: list[Fields] = field(default_factory=list)

    def has(self, verb: str, target: str = "") -> bool:
        """Whether the timeline has a verb, for a target if one is given."""
        return any(verb in entry and target in entry[verb] for entry in self.timeline)

    def is_struck(self, node: str) -> bool:
        """Whether the timeline has anything about a member but a slow link."""
        return any(node in entry.values() for entry in self.timeline if "delay" not in entry)

    @property
    def each(self) -> str:
        """The field of a topic's size."""
        return "partitions" if self.layout == "0.8" else "partitions_per_broker"

    def partitions(self, topic: str) -> list[str]:
        """The names of a topic's partitions in the order of the layout."""
        count = self.topics[topic]
        if self.layout == "0.8":
            return [str(at) for at in range(count)]
        return sorted(f"{broker}-{at}" for broker in range(self.brokers) for at in range(count))

    @property
    def strategy_setting(self) -> Fields:
        """The setting of the strategy, where the variant has one."""
        if self.variant.assignor is not None:
            return {}
        return {"partition.assignment.strategy": self.strategy}

    @property
    def is_refused(self) -> bool:
        """Whether Kafka 0.8.2 refuses to deal: it wants the same streams for every topic."""
        counts = {tuple(member.get("streams", {"": 1}).values()) for member in self.members}
        return self.strategy == "roundrobin" and any(len(set(one)) > 1 for one in counts)

    def streams(self, at: int, topic: str) -> int:
        """The number of streams of a member in a topic."""
        member = self.members[at]
        if "filter" in member:
            return int(member["filter"]["streams"])
        return int(member["streams"].get(topic, 0))


def drawn_group(dice: Random, variant: Variant) -> Drawn:
    """Draw a cluster and a group of one variant."""
    layout = dice.choice(variant.layouts)
    topics = {name: dice.randint(1, 5) for name in dice.sample(NAMES, dice.randint(1, 3))}
    strategy = "range" if variant.assignor is not None else dice.choice(STRATEGIES)
    names = sorted(topics)
    number = dice.randint(1, 4)
    has_filter = dice.random() < 0.35 and variant.filters_watched is WatchedFilters.ALL
    same = {topic: dice.randint(1, 3) for topic in names}
    if strategy == "roundrobin" and dice.random() < 0.5:
        same = dict.fromkeys(names, same[names[0]])
    members: list[Fields] = []
    for _ in range(number):
        wants: Fields = {"streams": dict(same)}
        if has_filter:
            expression = "|".join((*names, LATER))
            wants = {"filter": {"white_list": expression, "streams": same[names[0]]}}
        elif strategy == "range" and dice.random() < 0.3:
            some = dice.sample(names, dice.randint(1, len(names)))
            wants = {"streams": {topic: dice.randint(1, 3) for topic in some}}
        members.append(wants)
    nodes = {f"billing/{at}" for at in range(number)}
    brokers = dice.randint(1, 3)
    return Drawn(variant, layout, brokers, topics, dict(topics), strategy, members, nodes)


# --- changes ----------------------------------------------------------------------------


def change(dice: Random, drawn: Drawn, at_ms: int) -> list[Fields]:
    """Draw one change, and sometimes its end; a load where the change is not possible."""
    later_ms = at_ms + dice.choice((700, 4_000, 7_000))
    node = f"billing/{dice.randrange(len(drawn.members))}"
    kind = dice.choice(("leave", "leave", "crash", "return", "topic", "grow", "broker", "load"))
    if kind in ("leave", "crash", "return") and not drawn.is_struck(node):
        return _of_member(drawn, kind, node, at_ms)
    if kind == "topic" and "filter" in drawn.members[0] and LATER not in drawn.topics:
        drawn.topics[LATER] = dice.randint(1, 4)
        return [{"at": ms(at_ms), "create_topic": LATER, drawn.each: drawn.topics[LATER]}]
    if kind == "grow" and _may_grow(drawn):
        topic = _topic(dice, drawn)
        drawn.topics[topic] += dice.randint(1, 3)
        return [{"at": ms(at_ms), "add_partitions": topic, drawn.each: drawn.topics[topic]}]
    if kind == "broker" and drawn.variant.fetch_errors is FetchErrors.RETRY:
        broker = f"broker/{dice.randrange(drawn.brokers)}"
        if not drawn.has("start", broker):
            return [{"at": ms(at_ms), "leave": broker}, {"at": ms(later_ms), "start": broker}]
    topic, rate = _topic(dice, drawn), dice.choice((20, 300))
    return [{"at": ms(at_ms), "produce": topic, "rate": f"{rate}/s", "size": "100B"}]


def _of_member(drawn: Drawn, kind: str, node: str, at_ms: int) -> list[Fields]:
    if kind == "return":
        return [{"at": ms(at_ms), "leave": node}, {"at": ms(at_ms + 4_000), "start": node}]
    if len(drawn.running) == 1:
        return []
    drawn.running.discard(node)
    return [{"at": ms(at_ms), kind: node}]


def _may_grow(drawn: Drawn) -> bool:
    """0.7.2 watches the brokers of a topic, and not their numbers of partitions."""
    is_0_7_2 = drawn.variant.watches is WatchedPaths.MEMBERS_AND_TOPICS and drawn.layout == "0.7"
    return not is_0_7_2 and not drawn.has("add_partitions")


def _topic(dice: Random, drawn: Drawn) -> str:
    return dice.choice([name for name in sorted(drawn.topics) if name != LATER])
