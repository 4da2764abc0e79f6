"""Runs `hardened` under every kind of fault, and tabulates the properties that it holds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from docs.findings import found_of_all, markdown_table, searches_in_words
from docs.hardened_faults import BY_FILTER, FAULTS, ONLY_08, Timeline

from watchkeeper import Result, simulate
from watchkeeper.model.judgement.judge import PROPERTIES
from watchkeeper.model.plan.faults import VERBS
from watchkeeper.model.properties.ownership import STRICT
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, Verdict
from watchkeeper.model.registry.paths import Layout

SEEDS = range(30)
LAYOUTS: tuple[Layout, ...] = ("0.7", "0.8")
OF_DISKS = {"disk_slow", "disk_full"}
"""Verbs that need brokers with storage, whose scenarios have a page of their own."""
MOST_STATES = 4_000_000
"""Where a search of the page would end."""
LOAD = {"at": "0s", "produce": "clicks", "rate": "100/s"}


def scenario(timeline: Timeline, layout: str, *, by_filter: bool = False) -> dict[str, Any]:
    """The scenario of a small group under these faults."""
    replicas = {"replicas": 2} if layout == "0.8" else {}
    wanted = {"filter": {"white_list": ".*"}} if by_filter else {"streams": {"clicks": 1}}
    config = {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 1000}
    return {
        "name": "hardened",
        "about": "the properties that hardened holds",
        "clusters": {
            "main": {
                "layout": layout,
                "brokers": 2,
                "topics": {"clicks": {"partitions_per_broker": 2, **replicas}},
            }
        },
        "groups": {"group": {"consumers": 3, **wanted, "config": config}},
        "timeline": [LOAD, *timeline],
        "settle": "16s",
    }


def run(name: str, layout: str, seed: int) -> Result:
    """Run a fault; AssertionError if an entry of its timeline had no effect."""
    fields = scenario(FAULTS[name], layout, by_filter=name in BY_FILTER)
    result = simulate(fields, seed=seed)
    if not all(effect.is_real for effect in result.effects):
        raise AssertionError(f"{name} had no effect with seed {seed} on {layout}")
    return result


def verdicts(name: str, seeds: Iterable[int] = SEEDS) -> dict[str, str]:
    """The worst verdict of each property under this fault, in both layouts."""
    found = {claim.name: Verdict.HOLDS for claim in PROPERTIES}
    for layout in LAYOUTS if name not in ONLY_08 else ("0.8",):
        for seed in seeds:
            for finding in run(name, layout, seed).findings:
                before = found.get(finding.claim.name)
                if before is not None and before is not Verdict.VIOLATED:
                    found[finding.claim.name] = max(before, finding.verdict, key=BADNESS.index)
    return {claim: verdict.value for claim, verdict in found.items()}


BADNESS = [Verdict.HOLDS, Verdict.UNKNOWN, Verdict.VIOLATED]


def verbs_without_a_row() -> set[str]:
    """The verbs that concern a group and are in no timeline here."""
    used = {key for timeline in FAULTS.values() for entry in (LOAD, *timeline) for key in entry}
    return {verb.name for verb in VERBS.values() if verb.worlds} - used - OF_DISKS


def rows() -> Iterator[list[str]]:
    """A row for each fault."""
    for name in FAULTS:
        found = verdicts(name)
        yield [name, *(_cell(claim, word) for claim, word in found.items())]


def _cell(claim: str, verdict: str) -> str:
    """A verdict; what no client can hold is a known limit, which the page explains."""
    if claim == STRICT.name and verdict == Verdict.VIOLATED.value:
        return KNOWN_LIMIT
    return verdict if verdict == Verdict.HOLDS.value else f"**{verdict}**"


def searched() -> Iterator[str]:
    """A table of searches for each layout."""
    rows = [("hardened", layout) for layout in LAYOUTS]
    for found in found_of_all(rows, MOST_STATES, lambda line: print(line, file=sys.stderr)):
        yield f"Layout {found.layout}: {searches_in_words(found)}."
        yield "\n".join(markdown_table(["states", *found.columns], found.rows))


def hardened_page(page: Callable[..., str], table: Callable[..., str]) -> str:
    """The page: the table, and why no client can avoid its few exceptions."""
    runs = len(SEEDS) * len(LAYOUTS)
    return page(
        "What `hardened` holds",
        f"Three consumers, two brokers, four partitions, both layouts; {runs} runs of each "
        f"fault, {len(SEEDS)} of faults that only the 0.8 layout has. The table covers every "
        "verb of the timeline except those of disks, which need brokers that store messages. "
        "Random runs prove nothing; the table shows what was tried, and with which result.",
        table(["fault", *(claim.name for claim in PROPERTIES)], rows()),
        "*Strict single ownership* is a known limit of every client. A process that is paused, "
        "or cut off from ZooKeeper, learns of the end of its session only when it runs and "
        "receives the event. Even at best the event needs a moment, and by then another member "
        "may own the partition. A client can only make the window short: `hardened` stops "
        "fetching as soon as its connection is in doubt, so what remains is the moment between "
        "resuming and noticing. A system that cannot tolerate even this has to fence its writes: "
        "the storage checks a number that grows with each owner.",
        "## Every interleaving",
        "Two consumers, one broker, two partitions. Each search tries a fault or a change of "
        "topics once, in every interleaving: with a group that begins with the start of its "
        "members (*fresh*) or at rest (*settled*), without messages, or with one message of each "
        f"partition. A search may see {MOST_STATES:,} states; `+ …` would mark one that has "
        "more. A cell has the number of states. No state violates a property, and from each "
        "state a converged state is reachable without further faults; *strict single "
        "ownership* is not judged. [What searches have found](../findings.md) has the same "
        "searches for every variant.",
        *searched(),
    )
