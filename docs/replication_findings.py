"""The page of searches of a replicated partition under faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from watchkeeper.checker.replication.partition import WITHSTOOD, Bounds, Fault
from watchkeeper.checker.replication.search import Result, search
from watchkeeper.model.replication.variants import HARDENED, KAFKA_08, ReplicationVariant

Table = Callable[[list[str], Iterator[list[str]]], str]

TWO = Bounds(replicas=2, log=2, records=2, epochs=3)
THREE = Bounds(replicas=3, log=2, records=2, epochs=2)
PROPERTY = "strong ISR"
NO_FAULT: frozenset[Fault] = frozenset()
ROWS: dict[str, frozenset[Fault]] = {
    "no fault": NO_FAULT,
    **{fault.value: frozenset({fault}) for fault in Fault},
    "the first, second, fourth and fifth, each once": WITHSTOOD,
}
ONLY_WITH_TWO = (WITHSTOOD,)
"""What takes too long for a page with three replicas."""

INTRODUCTION = """\
The replicas of one partition lead and follow as controllers say. This page searches every order
of their steps for the nearest violation of *strong ISR*: each member of the ISR in ZooKeeper has
what any presumed leader has committed. Producers and consumers need that, since each member of
the ISR may lead next.

## What is searched

The partition is that of the [truncation rules](explanation/truncation-rules.md): requests that
were sent stay in a set, and a replica may take any of them whose epoch is greater than the one
that it knows. So requests are late, lost, repeated and out of order. Faults are steps as well;
each kind strikes once, at any moment. `kafka_08` is 0.8.2.2, with unclean elections forbidden but
where the row says otherwise.

- A process that **crashes and restarts** has forgotten which requests it has taken, and may take
  an old one. Its log stays.
- An **old checkpoint** has a smaller high watermark than the process knew.
- A **host that loses its last records** has not written them to its disk. The broker stays in the
  ISR until ZooKeeper ends its session. No version withstands that.
- A **reply that is lost** leaves a leader with an ISR that it has changed. It waits until it has
  read the state.
- A **deposed controller** writes a state, and brokers refuse its request. `hardened` prevents the
  write; the search lets it happen all the same.
- An **unclean election** loses messages by design.

## What is found

A cell has the number of steps of the nearest violation, and the number of states. Where no
violation is named, every state was seen."""

CLOSING = """\
Two of these searches have changed `hardened`. It took any request as the first one of a process:

- a leader that restarted took an old request to lead in its own epoch, with an ISR to which it
  had admitted a follower since, and committed messages that this follower did not have;
- a follower that restarted took an old request to follow a deposed leader, whose epoch was then
  its own, and cut off what was committed.

Now a process reads the state of a partition before it takes its first request for it, and takes
none of another epoch. Kafka refuses such requests since 2.2, by an epoch of the broker in each
request (KIP-380).

`python bench/control_plane.py --only-search --search-minutes 30` searches `hardened` under all
four faults that it has to withstand, each once, and goes on to larger bounds while time is left.
It merges states with the same future: replicas are interchangeable, records are, and a request
that no replica can take any more is forgotten. Tests compare such searches with whole ones. What
it found on 26 November 2026, on one core of a machine with other work (load 5 to 14):"""

MERGED = (
    (TWO, "holds, every state seen", 203_995, 716_188, "22", 0.18, 20),
    (THREE, "holds, every state seen", 1_044_436, 4_232_047, "28", 0.58, 457),
    (
        THREE._replace(epochs=3),
        "no violation so far",
        *(992_735, 3_277_311, "13, not to the end", 0.56, 700),
    ),
)
"""Bounds, what was found, merged states, successors, levels, GiB and seconds of that command."""


def replication_findings_page(page: Callable[..., str], table: Table) -> str:
    """Return the page: a table, and the nearest violations of `kafka_08`."""
    return page(
        "What searches of a replicated partition have found",
        INTRODUCTION,
        _found(table),
        CLOSING,
        _merged(table),
        "Of the first, an unmerged search has 1,026,383 states, as above.",
        "## The nearest violations in `kafka_08`",
        "The command at each writes it [as a page](how-to/explore-replicas.md): the replicas and "
        "ZooKeeper after each step.",
        *_paths(),
    )


@cache
def _searched(variant: ReplicationVariant, bounds: Bounds) -> Result:
    return search(variant, bounds, properties=(PROPERTY,))


def _found(table: Table) -> str:
    columns = [(variant, bounds) for bounds in (TWO, THREE) for variant in (KAFKA_08, HARDENED)]
    rows = (
        [name, *(_cell(variant, bounds, faults) for variant, bounds in columns)]
        for name, faults in ROWS.items()
    )
    heads = [f"`{variant.name}`, {bounds}" for variant, bounds in columns]
    return table(["fault", *heads], rows)


def _merged(table: Table) -> str:
    rows = (
        [str(bounds), found, f"{states:,}", f"{successors:,}", levels, f"{gib}", str(seconds)]
        for bounds, found, states, successors, levels, gib, seconds in MERGED
    )
    heads = ["bounds", "found", "merged states", "successors", "levels", "GiB", "s"]
    return table(heads, rows)


def _cell(variant: ReplicationVariant, bounds: Bounds, faults: frozenset[Fault]) -> str:
    if bounds is THREE and faults in ONLY_WITH_TWO:
        return "-"
    result = _searched(variant, bounds._replace(faults=faults))
    assert result.is_complete or result.counterexamples, "the bounds are too large for this page"
    path = result.counterexamples.get(PROPERTY)
    found = "holds" if path is None else f"**{len(path)} steps**"
    return f"{found} ({result.states:,})"


def _paths() -> Iterator[str]:
    for name, faults in ROWS.items():
        if len(faults) > 1:
            continue
        result = _searched(KAFKA_08, TWO._replace(faults=faults))
        steps = result.counterexamples[PROPERTY]
        numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        yield f"**{name}** (`{_command(faults)}`)\n\n{numbered}"


def _command(faults: frozenset[Fault]) -> str:
    """Return the command that finds a violation."""
    options = [f"--fault {fault.name.lower().replace('_', '-')}" for fault in faults]
    return " ".join(("watchkeeper explore-replicas", *options))
