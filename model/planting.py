"""Plants: a mistake, the variant that makes it, and where a search finds what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from model.bounds import Begin, Bounds
from model.registry import Layout
from model.variants import HARDENED, Variant
from model.verdicts import Property


@dataclass(frozen=True, slots=True)
class Configuration:
    """How large a cluster is, and what may befall it."""

    bounds: Bounds = field(default_factory=Bounds)
    members: int = 1
    brokers: int = 1
    topics: tuple[tuple[str, int], ...] = (("clicks", 1),)
    """Each with how many of its partitions a broker has; in layout 0.8, how many there are."""
    layout: Layout = "0.7"
    ids: tuple[str, ...] = ()
    """Of the members, where it matters how they sort."""
    wants: tuple[str, ...] = ()
    """The one topic that each member wants, where not all of them want all."""
    white_list: str = ""
    """What the members want, in place of topics."""

    @property
    def partitions(self) -> int:
        """How many there are in all."""
        counted = sum(count for _, count in self.topics)
        return counted * self.brokers if self.layout == "0.7" else counted


@dataclass(frozen=True, slots=True)
class Plant:
    """A mistake that was planted."""

    variant: Variant
    base: Variant
    origin: str
    """Where somebody made it."""
    caught_by: Property
    """What the search finds violated first."""
    configuration: Configuration

    @property
    def name(self) -> str:
        """Its variant's name."""
        return self.variant.name

    @property
    def mechanism(self) -> str:
        """What it does."""
        return self.variant.about


def bounded(begin: Begin = "fresh", messages: int = 0, **faults: int) -> Bounds:
    """The bounds of a search: so many faults of each kind."""
    return Bounds(faults, messages=messages, begin=begin)


def planted(
    name: str,
    origin: str,
    about: str,
    caught_by: Property,
    configuration: Configuration,
    base: Variant = HARDENED,
    **switch: Any,
) -> Plant:
    """A plant: its base with another answer to one question."""
    assert len(switch) == 1, "a plant differs in one answer"
    variant = replace(base, name=name, about=about, **switch)
    return Plant(variant, base, origin, caught_by, configuration)


def scenario_of(plant: Plant) -> Iterator[str]:
    """The lines of a scenario file in which a search catches a plant."""
    one = plant.configuration
    each = "partitions_per_broker" if one.layout == "0.7" else "partitions"
    topics = ", ".join(f"{name}: {{{each}: {count}}}" for name, count in one.topics)
    wants = ", ".join(f"{name}: 1" for name, _ in one.topics)
    members = ", ".join(
        [f"{{streams: {{{name}: 1}}}}" for name in one.wants]
        or [f"{{id: {it}}}" for it in one.ids]
    )
    streams = f"streams: {{{wants}}}"
    if one.white_list:
        streams = f"filter: {{white_list: '{one.white_list}'}}"
    config = ["zookeeper.session.timeout.ms: 2000"]
    if one.bounds.messages:
        config.append("auto.commit.interval.ms: 500")
    bounds = [f"{kind}: {number}" for kind, number in one.bounds.faults.items()]
    bounds += [f"begin: {one.bounds.begin}", f"messages: {one.bounds.messages}"]
    yield f"name: {plant.name}"
    yield f"about: Where a search catches that {plant.mechanism}."
    yield f"variant: {plant.name}"
    yield "clusters:"
    yield f'  main: {{zookeeper: {{servers: 1}}, brokers: {one.brokers}, layout: "{one.layout}",'
    yield f"         topics: {{{topics}}}}}"
    yield "groups:"
    yield f"  group: {{consumers: {f'[{members}]' if members else one.members}, {streams},"
    yield f"          config: {{{', '.join(config)}}}}}"
    yield f"bounds: {{{', '.join(bounds)}}}"
