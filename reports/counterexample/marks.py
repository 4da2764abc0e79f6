"""The marks of a counterexample's picture: what was fetched, claimed and notified, and when.

Time is counted in steps. The state before the first step has number 0, the state after a step
has the number of that step. An interval includes the state `begins` and excludes the state
`ends`; one without an end lasts beyond the last step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from watchkeeper.model.counterexample.counterexample import (
    Counterexample,
    CounterexampleStep,
    ProcessSnapshot,
)
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.properties.ownership import STRICT
from watchkeeper.reports.facts.names import natural

NOT_CONSUMERS = "broker/"
ADMINISTRATOR = "administrator"
LOST_BY = frozenset(
    {
        StepKind.DISCONNECT,
        StepKind.CRASH,
        StepKind.LOST_REQUEST,
        StepKind.LOST_REPLY,
        StepKind.DELAYED_REQUEST,
        StepKind.SESSION_EXPIRED,
    }
)
"""The steps with which the notifications on their way to a process are lost."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The steps during which a node fetched, claimed or was sent something."""

    node: str
    what: str
    """The partition, or the text of the notification."""
    begins: int
    ends: int | None
    state: str = ""
    """Of a fetch: whether the session was alive. Of a notification: what became of it."""


def group_of(node: str) -> str:
    """The group of a member, by its name."""
    return node.rpartition("/")[0]


def consumers(nodes: Sequence[str]) -> list[str]:
    """Return the processes that may fetch, in natural order; all of them if there is none."""
    names = [
        name for name in nodes if not name.startswith(NOT_CONSUMERS) and name != ADMINISTRATOR
    ]
    return sorted(names or nodes, key=natural)


def lanes(counterexample: Counterexample) -> list[str]:
    """Return the processes that get a lane: consumers, and any other that acts or changes."""
    always = set(consumers(counterexample.nodes))
    acting = {step.scheduled.node for step in counterexample.all_steps}
    states = snapshots(counterexample)
    return [
        name
        for name in counterexample.nodes
        if name in always or name in acting or len({state[name] for state in states}) > 1
    ]


def snapshots(counterexample: Counterexample) -> list[Mapping[str, ProcessSnapshot]]:
    """Return the processes' snapshots before the first step and after each step."""
    return [counterexample.first, *(step.snapshots for step in counterexample.all_steps)]


# --- intervals -------------------------------------------------------------------------


def intervals(moments: list[Mapping[tuple[str, str], str]]) -> list[Interval]:
    """Return the intervals in which a (node, what) kept one state.

    `moments` holds the state of each (node, what) before the first step and after each step;
    a change of state ends an interval and begins the next.
    """
    found: list[Interval] = []
    since: dict[tuple[str, str], tuple[int, str]] = {}
    for number, now in enumerate(moments):
        for key, (begun, state) in list(since.items()):
            if now.get(key) != state:
                found.append(Interval(*key, begun, number, state))
                del since[key]
        for key, state in now.items():
            since.setdefault(key, (number, state))
    found += [Interval(*key, begun, None, state) for key, (begun, state) in since.items()]
    return sorted(
        found, key=lambda interval: (interval.what, interval.begins, natural(interval.node))
    )


def fetched(counterexample: Counterexample) -> list[Interval]:
    """Return which process fetched which partition when; the state is that of its session."""
    return intervals([_fetching(now) for now in snapshots(counterexample)])


def _fetching(now: Mapping[str, ProcessSnapshot]) -> Mapping[tuple[str, str], str]:
    return {
        (node, partition): "alive" if snapshot.session.startswith("alive") else "dead"
        for node, snapshot in now.items()
        for partition in snapshot.fetching
    }


def tracks(bars: list[Interval]) -> list[int]:
    """Return a track for each bar of one column, so that simultaneous bars are side by side.

    `bars` are in the order of their beginnings.
    """
    last: list[Interval] = []
    found = []
    for bar in bars:
        free = [
            at
            for at, ended in enumerate(last)
            if ended.ends is not None and ended.ends <= bar.begins
        ]
        # A node whose state changes (its session dies) has two adjacent bars: one track for both.
        same = [at for at in free if last[at].node == bar.node and last[at].ends == bar.begins]
        track = (same or free or [len(last)])[0]
        last[track : track + 1] = [bar]
        found.append(track)
    return found


def claimed(counterexample: Counterexample) -> list[Interval]:
    """Return which process had a claim on which partition when."""
    moments = [counterexample.first_owners, *(step.owners for step in counterexample.all_steps)]
    return intervals([{(owner, at): "" for at, owner in owners.items()} for owners in moments])


def shared(counterexample: Counterexample) -> list[Interval]:
    """Return when several members of one group fetched one partition; the node is the group.

    Only the strict property forbids a second owner whose session is dead. For every other
    property, members with a dead session do not count.
    """
    counts_dead = counterexample.violates == STRICT.name
    moments: list[Mapping[tuple[str, str], str]] = []
    for now in snapshots(counterexample):
        owners: dict[tuple[str, str], int] = {}
        for (node, partition), session in _fetching(now).items():
            if counts_dead or session == "alive":
                key = (group_of(node), partition)
                owners[key] = owners.get(key, 0) + 1
        moments.append({key: "" for key, number in owners.items() if number > 1})
    return intervals(moments)


# --- notifications ---------------------------------------------------------------------


def notifications(counterexample: Counterexample) -> list[Interval]:
    """Return the watch events that the service sent, from the step that sent each.

    The state is "received", "lost" or, for an event without an end, "on its way".
    """
    found: list[Interval] = []
    for node in counterexample.nodes:
        found += _notifications_to(counterexample, node)
    return sorted(found, key=lambda sent: (sent.begins, natural(sent.node), sent.what))


def _notifications_to(counterexample: Counterexample, node: str) -> Iterator[Interval]:
    pending = [(what, 0) for what in _events(counterexample.first[node])]
    for step in counterexample.all_steps:
        # Snapshots hold texts without identity. Equal texts are matched oldest first; those
        # left over after the match are new.
        unmatched = _events(step.snapshots[node])
        kept: list[tuple[str, int]] = []
        for what, begun in pending:
            if what in unmatched:
                unmatched.remove(what)
                kept.append((what, begun))
            else:
                yield Interval(node, what, begun, step.number, _end(step, node))
        pending = kept + [(what, step.number) for what in unmatched]
    for what, begun in pending:
        yield Interval(node, what, begun, None, "on its way")


def _events(snapshot: ProcessSnapshot) -> list[str]:
    """Return the watch events that a process has not received yet; each begins with a path."""
    return [event for event in snapshot.notifications if event.startswith("/")]


def _end(step: CounterexampleStep, node: str) -> str:
    is_lost = step.scheduled.node == node and step.scheduled.last in LOST_BY
    return "lost" if is_lost else "received"


# --- what has changed ------------------------------------------------------------------


def changes(
    before: Mapping[str, ProcessSnapshot],
    owners: Mapping[str, str],
    registry: Mapping[str, str],
    after: CounterexampleStep,
) -> list[str]:
    """Return a sentence for each change of fetching, claims and data that a step made.

    `before`, `owners` and `registry` are the snapshots, the owners of the claims and what the
    registry says before the step.
    """
    sentences = []
    for node, now in after.snapshots.items():
        was = before[node].fetching
        begun = [partition for partition in now.fetching if partition not in was]
        ended = [partition for partition in was if partition not in now.fetching]
        sentences += [f"{node} fetches {', '.join(begun)}"] if begun else []
        sentences += [f"{node} stops {', '.join(ended)}"] if ended else []
    for at in sorted({*owners, *after.owners}, key=natural):
        owner = after.owners.get(at)
        if owner != owners.get(at):
            sentences.append(f"{at}: {owner} claims" if owner else f"{at}: no claim any more")
    for name in sorted({*registry, *after.registry}):
        says = after.registry.get(name)
        if says != registry.get(name):
            sentences.append(f"{name}: nothing any more" if says is None else f"{name}: {says}")
    return sentences
