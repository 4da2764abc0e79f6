"""State abstraction: processes that behave alike from here on, once no more faults can come.

A notification under way differs from one in the inbox in one respect: it is lost if the
connection breaks. Without faults no connection of a live session breaks, and a reply is taken
after every notification that was sent before it. So a process that waits for a reply may be
given its notifications at once. One difference still counts: which notifications were there
when a batch was sent, since these are older than what the batch reads. A notification that a
batch yet to be sent may supersede stays under way, with all after it. And a process whose
application commits by hand stays as it is: an order may come between two notifications.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from watchkeeper.checker.actors.actor import Actor
from watchkeeper.checker.actors.actor_state import ActorState
from watchkeeper.model.actor.inbox import is_superseded
from watchkeeper.model.actor.operations import Operation, Pipelined


def canonical(process: Actor, state: ActorState) -> ActorState:
    """Return the canonical one of all processes that behave like this one."""
    if state.phase == "gone":
        return replace(state, life=0)
    if state.phase != "running" or state.link != "up" or not state.is_alive:
        return state
    if process.commits_by_hand:
        return state
    effect = process.effect_of(state)
    if type(effect) is Pipelined:
        if not state.batch:
            count = next(
                (
                    at
                    for at, pending in enumerate(state.channel)
                    if _is_read_again(pending, effect)
                ),
                len(state.channel),
            )
            return _with_events_taken(state, count, state.known)
        return _with_events_taken(state, len(state.channel), _known_before(state, effect))
    if isinstance(effect, Operation):
        return _with_events_taken(state, len(state.channel), state.known)
    return state


def _with_events_taken(state: ActorState, count: int, known: int) -> ActorState:
    if not count and known == state.known:
        return state
    inbox = (*state.inbox, *state.channel[:count])
    return replace(state, inbox=inbox, channel=state.channel[count:], known=known)


def _known_before(state: ActorState, batch: Any) -> int:
    """Return how many notifications count as older than the batch.

    Behind the last one that the batch supersedes the number makes no difference.
    """
    known = state.known
    while known and not _is_read_again(state.inbox[known - 1], batch):
        known -= 1
    return known


def _is_read_again(notification: Any, batch: Any) -> bool:
    return any(is_superseded(notification, part) for part in batch.operations)
