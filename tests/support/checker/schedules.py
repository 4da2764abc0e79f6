"""What tests of replays share: small clusters, and counterexamples of them."""

from __future__ import annotations

from functools import cache

from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.search.search import Search
from watchkeeper.model.counterexample.counterexample import ScheduledStep
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios import from_text

FAULTS = ("crash", "restart", "join", "leave", "expire", "disconnect", "late_request")
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
def nearest(variant: str) -> tuple[Plan, str, tuple[ScheduledStep, ...]]:
    """What a variant violates with two members and no fault, and how."""
    plan = two_topics(variant)
    return (plan, *counterexample(plan, Bounds()))


def counterexample(plan: Plan, bounds: Bounds) -> tuple[str, tuple[ScheduledStep, ...]]:
    """The nearest violation, and the schedule that leads there."""
    system = ClusterSystem(plan, bounds)
    search = Search(system)
    searched = search.run()
    assert searched.violations, f"nothing is violated: {searched}"
    counterexample = counterexample_of(system, search, searched.violations[0])
    return counterexample.violates, tuple(step.scheduled for step in counterexample.steps)
