"""The page of searches of a group that keeps its offsets in Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from watchkeeper.checker.offsets.group import Bounds
from watchkeeper.checker.offsets.search import Result, search
from watchkeeper.checker.offsets.state import Fault
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.replication.variants import HARDENED, KAFKA_08, ReplicationVariant

Table = Callable[[list[str], Iterator[list[str]]], str]

ONE = Bounds(members=1, commits=2, epochs=3)
TWO = Bounds(members=2, commits=2, epochs=2)
NO_FAULT: frozenset[Fault] = frozenset()
WITH_CRASH = frozenset({Fault.EXPIRY, Fault.CRASH})
WITH_DEPOSED = frozenset({Fault.EXPIRY, Fault.DEPOSED})
ROWS: dict[str, frozenset[Fault]] = {
    "no fault": NO_FAULT,
    **{fault.value: frozenset({fault}) for fault in Fault},
    f"{Fault.EXPIRY.value}, and {Fault.CRASH.value}": WITH_CRASH,
    f"{Fault.EXPIRY.value}, and {Fault.DEPOSED.value}": WITH_DEPOSED,
}
ONLY_WITH_ONE = (WITH_CRASH, WITH_DEPOSED)
"""What takes too long for a page with two members."""

INTRODUCTION = """\
A group commits the offsets of one partition to Kafka and fetches them again, while two brokers
coordinate it in turn. This page searches every order of their steps for the nearest violation of
*commits are found*, *no offset is missing* or *expired offsets stay expired*, as they are judged
in runs.

## What is searched

Both brokers have a replica of the offsets topic. The leader coordinates: it appends a commit, and
acknowledges it once the ISR has it. A follower fetches; its request and the response are two
steps, so its high watermark lags. A broker that begins to lead loads one record at a time, or
reads the log, as its version does. A broker learns of an election at any moment after it. Members
send commits and fetches to either broker. Faults are steps as well, and strike once, at any
moment:

- The **coordinator crashes**: it forgets its cache, and its log stays. The other one is elected.
- It **hands over in good order**: the other one is elected, and both stay in the ISR.
- It is **deposed and does not know**: it goes on answering.
- The **reply** to a commit is lost; a commit **arrives late**; a **member crashes** while it
  commits. What was not acknowledged may be there or not.
- The **retention passes**: all commits so far are too old, and coordinators append tombstones.

What a cache keeps of two records is decided by the code of the broker. The rest is a model of it;
the same faults in the simulation run the broker itself. Old requests of controllers, old
checkpoints and lost disks are in the [search of replicas](findings-replication.md).

## What is found

A cell has the number of steps of the nearest violation, and the number of states. Where no
violation is named, every state was seen. After a crash the broker that is left is the whole ISR
here, so its high watermark rises at once. With a third broker in the ISR a crash is like a
hand-over: the shipped scenario `coordinator-crash-first-commit` shows that of `kafka_08`."""


def offsets_findings_page(page: Callable[..., str], table: Table) -> str:
    """Return the page: a table, and the nearest violations of `kafka_08`."""
    return page(
        "What searches of offsets in Kafka have found",
        INTRODUCTION,
        _found(table),
        "## The nearest violations in `kafka_08`",
        *_paths(),
    )


@cache
def _searched(variant: ReplicationVariant, bounds: Bounds) -> Result:
    result = search(variant, bounds)
    assert result.verdict is not Verdict.UNKNOWN, "a search without limits ends"
    return result


def _found(table: Table) -> str:
    columns = [(variant, bounds) for bounds in (ONE, TWO) for variant in (KAFKA_08, HARDENED)]
    rows = (
        [name, *(_cell(variant, bounds, faults) for variant, bounds in columns)]
        for name, faults in ROWS.items()
    )
    return table(["fault", *(f"`{variant.name}`, {bounds}" for variant, bounds in columns)], rows)


def _cell(variant: ReplicationVariant, bounds: Bounds, faults: frozenset[Fault]) -> str:
    if bounds is TWO and faults in ONLY_WITH_ONE:
        return "-"
    result = _searched(variant, bounds._replace(faults=faults))
    found = f"**{len(result.steps)} steps**" if result.steps else "holds"
    return f"{found} ({result.states:,})"


def _paths() -> Iterator[str]:
    for name, faults in ROWS.items():
        result = _searched(KAFKA_08, ONE._replace(faults=faults))
        if result.steps and faults != WITH_DEPOSED:
            numbered = "\n".join(
                f"{number}. {step}" for number, step in enumerate(result.steps, 1)
            )
            yield f"**{name}** (`{_command(faults)}`): *{result.violated}*\n\n{numbered}"


def _command(faults: frozenset[Fault]) -> str:
    """Return the command that finds a violation."""
    chosen = [fault.name.lower() for fault in Fault if fault in faults]
    return " ".join(("watchkeeper explore-offsets", *(f"--fault {name}" for name in chosen)))
