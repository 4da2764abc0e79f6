"""What tests of replays share: small clusters, and counterexamples of them."""

from __future__ import annotations

from functools import cache

from explore.cluster import ClusterSystem
from explore.search import Limits, Search
from explore.story import story_of
from model.bounds import Bounds
from model.plan import Plan
from model.story import Deed
from scenarios import from_text

FAULTS = ("crash", "restart", "join", "leave", "expire", "disconnect", "ghost")
EVERY_FAULT = dict.fromkeys((*FAULTS, "lost_request", "lost_reply"), 1)

SMALL = """
name: small
about: Two brokers with two topics, and a few consumers.
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: 2
    layout: "{layout}"
    topics: {{clicks: {{{partitions}}}, views: {{{partitions}}}}}
groups:
  billing: {{cluster: main, consumers: {consumers}, streams: {{clicks: 1, views: 1}}}}
"""


def two_topics(variant: str, consumers: int = 2, layout: str = "0.7") -> Plan:
    """A small cluster with two topics."""
    partitions = "partitions_per_broker: 1" if layout == "0.7" else "partitions: 2"
    text = SMALL.format(layout=layout, partitions=partitions, consumers=consumers)
    return from_text("small.yaml", text).plan(variant)


@cache
def nearest(variant: str) -> tuple[Plan, str, tuple[Deed, ...]]:
    """What a variant violates with two members and no fault, and how."""
    plan = two_topics(variant)
    return (plan, *counterexample(plan, Bounds()))


def counterexample(
    plan: Plan, bounds: Bounds, seconds: float = 60.0
) -> tuple[str, tuple[Deed, ...]]:
    """The nearest violation, and the schedule that leads there."""
    system = ClusterSystem(plan, bounds)
    search = Search(system, Limits(seconds=seconds))
    searched = search.run()
    assert searched.violations, f"nothing is violated: {searched}"
    story = story_of(system, search, searched.violations[0])
    return story.violates, tuple(step.deed for step in story.steps)
