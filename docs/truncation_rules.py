"""The page of the truncation rules, each of which is searched for the nearest violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from docs.published_models import published_models

from watchkeeper.checker.replication.partition import Bounds
from watchkeeper.checker.replication.search import Result, search
from watchkeeper.model.replication.truncation import RULES
from watchkeeper.model.replication.variants import KAFKA_08

Table = Callable[[list[str], Iterator[list[str]]], str]

BOUNDS = (
    Bounds(replicas=2, log=2, records=2, epochs=3),
    Bounds(replicas=3, log=1, records=1, epochs=3),
    Bounds(replicas=3, log=2, records=2, epochs=2),
)

INTRODUCTION = """\
A broker that becomes a follower may hold records that its new leader does not have. It has to
cut its log to what both have. If it cuts less, the logs differ; if it cuts more and is elected
next, what was committed is lost. Kafka has changed the rule three times. This page searches
each rule, and the draft of the last one, for the nearest violation. Brokers of 0.8 cut at their
own high watermark.

## What is searched

One partition, whose replicas are all in sync at first. The controller elects members of the ISR
and takes replicas for dead, in any order and as often as there are epochs. Every LeaderAndIsr
request that was sent can be taken by its replica at any later time, or never, as long as its
epoch is greater than the one that the replica is in. A leader appends, commits, drops followers
and admits them whenever its rule allows it; only the leader that ZooKeeper names may change the
ISR there. This is the state of J. Gustafson's TLA+ models of Kafka's replication (2018), with
Kafka's own steps in three places; [below](#beside-the-published-tla-models) the models' text is
taken as it is, and compared with TLC.

| property | says |
| --- | --- |
| strong ISR | each member of the ISR in ZooKeeper has what any presumed leader has committed |
| weak ISR | the same for the ISR that the leader knows |
| leader in ISR | the leader in ZooKeeper is a member of the ISR there, or there is none |

*Strong ISR* is what producers and consumers need: each member of the ISR may be elected next.

## The rules"""


def truncation_rules_page(page: Callable[..., str], table: Table) -> str:
    """Return the page: the rules, what a search of each finds, and the nearest violations."""
    results = [
        [search(replace(KAFKA_08, truncation=rule), bounds) for bounds in BOUNDS]
        for rule in RULES
    ]
    return page(
        "Truncation rules",
        INTRODUCTION,
        _rules(table),
        "## What is found",
        _found(table, results),
        "## The nearest violations of strong ISR",
        *_paths(results),
        *published_models(table),
    )


def _rules(table: Table) -> str:
    rows = (
        [
            rule.name,
            rule.since,
            "a fetch that shows a difference" if rule.cuts_before_fetch else "a new leader epoch",
            rule.agreement.value,
            "yes" if rule.admits_after_own_epoch else "no",
        ]
        for rule in RULES
    )
    return table(
        ["rule", "since", "cuts at", "a follower's records count if", "waits for its epoch"], rows
    ) + (
        "\n\n*Waits for its epoch*: a leader admits followers to the ISR only once its high\n"
        "watermark has reached the first record of its own epoch, or the end of its log."
    )


def _found(table: Table, results: list[list[Result]]) -> str:
    rows = (
        [each[0].variant.truncation.name, *(_cell(result) for result in each)] for each in results
    )
    return (
        "Each cell has the violated properties with the steps of the nearest violation, and the\n"
        "number of states.\n\n" + table(["rule", *map(str, BOUNDS)], rows)
    )


def _cell(result: Result) -> str:
    assert result.is_complete or result.counterexamples, "the bounds are too large for this page"
    found = "; ".join(f"{name}: {len(path)}" for name, path in result.counterexamples.items())
    return f"{found or 'holds'} ({result.states:,})"


def _paths(results: list[list[Result]]) -> Iterator[str]:
    for each in results:
        paths = [
            (result.counterexamples["strong ISR"], result.bounds)
            for result in each
            if "strong ISR" in result.counterexamples
        ]
        if paths:
            steps, bounds = min(paths, key=lambda pair: len(pair[0]))
            numbered = "\n".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
            yield f"**{each[0].variant.truncation.name}** ({bounds})\n\n{numbered}"
