"""A mutant: a mistake, the variant that makes it, and where a search finds the violation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from watchkeeper.model.group.variants import HARDENED, Variant
from watchkeeper.model.mutants.mutation import Mutation
from watchkeeper.model.plan.bounds import Begin, Bounds
from watchkeeper.model.properties.verdicts import Property
from watchkeeper.model.registry.paths import Layout


@dataclass(frozen=True, slots=True)
class Configuration:
    """The size of a cluster, and the faults that may affect it."""

    bounds: Bounds = field(default_factory=Bounds)
    members: int = 1
    brokers: int = 1
    topics: tuple[tuple[str, int], ...] = (("clicks", 1),)
    """Name and number of partitions: per broker in layout 0.7, in all in layout 0.8."""
    layout: Layout = "0.7"
    ids: tuple[str, ...] = ()
    """The ids of the members, where their order matters."""
    wants: tuple[str, ...] = ()
    """The one topic of each member, where members subscribe to different topics."""
    white_list: str = ""
    """The filter of the members, in place of topics."""

    @property
    def partitions(self) -> int:
        """The number of partitions in all."""
        counted = sum(count for _, count in self.topics)
        return counted * self.brokers if self.layout == "0.7" else counted


@dataclass(frozen=True, slots=True)
class Mutant:
    """A variant with one mistake."""

    variant: Variant
    base: Variant
    """The variant without the mistake."""
    mutation: Mutation | None
    """The mutated code; None if the variant gives another answer than its base."""
    origin: str
    """The system, and its issue, that made the mistake."""
    caught_by: Property
    """The property that the search finds violated first."""
    configuration: Configuration

    @property
    def name(self) -> str:
        """The name of its variant."""
        return self.variant.name

    @property
    def mechanism(self) -> str:
        """What the mutant does."""
        return self.variant.about


def bounded(begin: Begin = "fresh", messages: int = 0, **faults: int) -> Bounds:
    """Return the bounds of a search: the number of faults of each kind."""
    return Bounds(faults, messages=messages, begin=begin)


def mutant_of(
    name: str,
    origin: str,
    about: str,
    caught_by: Property,
    configuration: Configuration,
    base: Variant = HARDENED,
    mutation: Mutation | None = None,
    layouts: tuple[Layout, ...] = (),
    **answer: Any,
) -> Mutant:
    """Return a mutant: its base with one mutation, or with another answer to one question.

    `layouts` are those in which the mutation has a meaning; those of its base by default.
    """
    assert len(answer) + (mutation is not None) == 1, "a mutant differs in one thing"
    variant = replace(base, name=name, about=about, layouts=layouts or base.layouts, **answer)
    return Mutant(variant, base, mutation, origin, caught_by, configuration)


def scenario_of(mutant: Mutant) -> Iterator[str]:
    """Yield the lines of a scenario file in which a search catches a mutant."""
    size = mutant.configuration
    brokers = f'brokers: {size.brokers}, layout: "{size.layout}"'
    each = "partitions_per_broker" if size.layout == "0.7" else "partitions"
    topics = ", ".join(f"{name}: {{{each}: {count}}}" for name, count in size.topics)
    wants = ", ".join(f"{name}: 1" for name, _ in size.topics)
    members = ", ".join(
        [f"{{streams: {{{name}: 1}}}}" for name in size.wants]
        or [f"{{id: {identifier}}}" for identifier in size.ids]
    )
    streams = f"streams: {{{wants}}}"
    if size.white_list:
        streams = f"filter: {{white_list: '{size.white_list}'}}"
    config = ["zookeeper.session.timeout.ms: 2000"]
    if size.bounds.messages:
        config.append("auto.commit.interval.ms: 500")
    bounds = [f"{kind}: {number}" for kind, number in size.bounds.faults.items()]
    bounds += [f"begin: {size.bounds.begin}", f"messages: {size.bounds.messages}"]
    yield f"name: {mutant.name}"
    yield f"about: Where a search catches that {mutant.mechanism}."
    yield f"variant: {mutant.name}"
    yield "clusters:"
    yield f"  main: {{zookeeper: {{servers: 1}}, {brokers},"
    yield f"         topics: {{{topics}}}}}"
    yield "groups:"
    yield f"  group: {{consumers: {f'[{members}]' if members else size.members}, {streams},"
    yield f"          config: {{{', '.join(config)}}}}}"
    yield f"bounds: {{{', '.join(bounds)}}}"
