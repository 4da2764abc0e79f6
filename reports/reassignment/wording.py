"""The steps of a reassignment as sentences."""

from __future__ import annotations

from collections.abc import Sequence

from watchkeeper.model.properties.verdicts import counted
from watchkeeper.reports.facts.control_plane.reassignments import (
    NO_CONTROLLER,
    Move,
    MoveStep,
    Outcome,
    Taken,
)
from watchkeeper.reports.facts.names import listed
from watchkeeper.reports.facts.spans import Span

SENTENCES = {
    MoveStep.REQUESTED: "{by} requests it",
    MoveStep.REFUSED: "{by} refuses: {why}",
    MoveStep.GROWN: "{by} assigns the new replicas",
    MoveStep.BEGUN: "{by} has the new replicas fetch",
    MoveStep.REPEATED: "{by} has them fetch once more",
    MoveStep.RESUMED: "{by} goes on with it as the new controller",
    MoveStep.JOINED: "{by} takes broker {broker} into the ISR",
    MoveStep.FELL_OUT: "{by} takes broker {broker} out of the ISR",
    MoveStep.LED: "{by} has broker {broker} lead",
    MoveStep.UNLED: "{by} leaves it without a leader",
    MoveStep.LEFT: "{by} takes broker {broker} out of the ISR",
    MoveStep.DELETED: "{by} deletes its replica",
    MoveStep.SHRUNK: "{by} assigns the new ones alone",
    MoveStep.REMOVED: "{by} removes the request",
}
OUTCOMES = {
    Outcome.COMPLETE: "complete after {took}",
    Outcome.REFUSED: "refused",
    Outcome.DROPPED: "dropped after {took}: the assignment names {assigned}",
    Outcome.UNFINISHED: "not complete when the run ends, {took} later",
}


def sentence(taken: Taken) -> str:
    """Say what was done, and by which process."""
    by = taken.by or "a process"
    return SENTENCES[taken.step].format(by=by, broker=taken.broker, why=taken.why)


def headline(move: Move) -> str:
    """Say how a move ended."""
    took = duration(move.until_us - move.begin_us)
    text = OUTCOMES[move.outcome].format(took=took, assigned=_brokers(move.assigned))
    if len(move.controllers) > 1:
        text += f"; the controllers were {listed(move.controllers)}"
    return text


def route(move: Move) -> str:
    """Say from where to where: the brokers that had it, and the ones that are to have it."""
    whence = f"from {_brokers(move.old)} " if move.old else ""
    return f"{whence}to {_brokers(move.targets)}"


def stall(span: Span) -> str:
    """Say what a move waited for."""
    return NO_CONTROLLER if span.what == NO_CONTROLLER else f"broker {span.what} is dead"


def summary(moves: Sequence[Move], most: int) -> str:
    """Say what the picture shows."""
    parts = [
        f"How {counted(len(moves), 'reassignment')} went on, each on a time axis of its own."
    ]
    for outcome in Outcome:
        ended = sum(move.outcome is outcome for move in moves)
        if ended:
            parts.append(f"{ended} {outcome.value}.")
    if len(moves) > most:
        parts.append(f"{len(moves) - most} more are not drawn.")
    return " ".join(parts)


def duration(us: int) -> str:
    """A duration with three digits."""
    if us < 1_000_000:
        return f"{us / 1e3:.3g} ms"
    return f"{us / 1e6:.3g} s"


def _brokers(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "nothing"
