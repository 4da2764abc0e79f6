"""Operations and watch firings of a run, joined from their two ends.

A program has one request at a time, so a response belongs to the oldest open request of the
same process with the same word and purpose. A request that is open when its process ends has
no response. One that is open when its connection breaks has none but that the connection was
lost: a server does not answer it on the next connection. A write also shows where it took
effect: the "applied" or "refused" event, found by its zxid, or, if no response carried the zxid,
as the latest that matches.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from watchkeeper.model.actor.errors import ConnectionLoss
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

Outcome = Literal["ok", "error", "lost"]

KINDS = (
    EventKind.STARTED,
    EventKind.ENDED,
    EventKind.ABANDONED,
    EventKind.CONNECTED,
    EventKind.SUSPENDED,
    EventKind.EXPIRED,
    EventKind.REQUEST,
    EventKind.RESPONSE,
)
ENDS_OF_CONNECTIONS = (EventKind.STARTED, EventKind.ENDED, EventKind.SUSPENDED, EventKind.EXPIRED)
TOGETHER_US = 500
"""A firing that follows another within this time is drawn with it."""


@dataclass(slots=True)
class Asked:
    """One operation of a process."""

    ask: Event
    server: str
    """The server of its connection; empty if there was none, so that it was never sent."""
    answer: Event | None = None
    is_cut: bool = False
    """Whether its connection broke before an answer."""
    effects: list[Event] = field(default_factory=list)
    """The writes that it led to: as they took effect, or were refused."""

    @property
    def word(self) -> str:
        """The word of the operation: create, get, multi, ..."""
        return str(self.ask.detail.get("op", ""))

    @property
    def purpose(self) -> str:
        """Its purpose."""
        return str(self.ask.detail.get("purpose", ""))

    @property
    def error(self) -> str:
        """The name of its error; empty if there was none."""
        return "" if self.answer is None else _error_in(self.answer)

    @property
    def outcome(self) -> Outcome:
        """ok, error, or lost: its effect is unknown to the process."""
        if self.answer is None or self.error == ConnectionLoss.__name__:
            return "lost"
        return "error" if self.error else "ok"


def operations(trace: Trace) -> list[Asked]:
    """Every operation, in the order of requests."""
    found: list[Asked] = []
    waiting: dict[str, list[Asked]] = {}
    connected_to: dict[str, str] = {}
    for event in trace.of_kind(*KINDS):
        if event.kind == EventKind.REQUEST:
            asked = Asked(event, connected_to.get(event.node, ""))
            found.append(asked)
            waiting.setdefault(event.node, []).append(asked)
        elif event.kind == EventKind.RESPONSE:
            _answer(waiting.get(event.node, []), event)
        elif event.kind == EventKind.CONNECTED:
            connected_to[event.node] = str(event.detail.get("at", ""))
        elif event.kind == EventKind.ABANDONED:
            waiting.pop(event.node, None)
        else:
            connected_to.pop(event.node, None)
            for asked in waiting.get(event.node, ()):
                asked.is_cut = True
            if event.kind in (EventKind.STARTED, EventKind.ENDED):
                waiting.pop(event.node, None)
    return found


def _answer(waiting: list[Asked], event: Event) -> None:
    """Give an answer to the oldest operation that it fits."""
    is_loss = _error_in(event) == ConnectionLoss.__name__
    for at, asked in enumerate(waiting):
        if _asks_for(asked.ask) == _asks_for(event) and (is_loss or not asked.is_cut):
            asked.answer = event
            del waiting[at]
            return


def _error_in(answer: Event) -> str:
    what = answer.detail.get("answer")
    return str(what["error"]) if isinstance(what, Mapping) and "error" in what else ""


def _asks_for(event: Event) -> tuple[Any, Any]:
    return event.detail.get("op"), event.detail.get("purpose")


# --- effects ---------------------------------------------------------------------------


def attach_effects(asked: Iterable[Asked], effects: Iterable[Event]) -> list[Event]:
    """Attach each write's effect, or refusal, to its operation.

    Returns the effects that are left: those of operations that are not among these.
    """
    by_zxid: dict[tuple[str, int], list[Asked]] = {}
    by_node: dict[str, list[Asked]] = {}
    for operation in asked:
        by_node.setdefault(operation.ask.node, []).append(operation)
        if operation.answer is not None and operation.answer.zxid:
            # A server answers a read with the zxid of the last write that it knows.
            by_zxid.setdefault((operation.ask.node, operation.answer.zxid), []).append(operation)
    left_over = []
    for effect in effects:
        node = str(effect.detail.get("by", ""))
        answered = by_zxid.get((node, effect.zxid), ())
        fitting = (one for one in answered if _fits(one.ask.detail, effect.detail))
        owner = next(fitting, None) or _latest(by_node.get(node, ()), effect)
        if owner is None:
            left_over.append(effect)
        else:
            owner.effects.append(effect)
    return left_over


def _latest(candidates: Sequence[Asked], effect: Event) -> Asked | None:
    """The latest operation before an effect that matches it and whose response had no zxid."""
    before = bisect(candidates, effect.seq, key=lambda operation: operation.ask.seq)
    for at in range(before - 1, -1, -1):
        candidate = candidates[at]
        told_zxid = candidate.answer is not None and candidate.answer.zxid
        if not told_zxid and _fits(candidate.ask.detail, effect.detail):
            return candidate
    return None


def _fits(ask: Mapping[str, Any], effect: Mapping[str, Any]) -> bool:
    """Whether an operation, or one of a pipelined batch, may have had this effect."""
    if ask.get("purpose") != effect.get("purpose"):
        return False
    if ask.get("op") == effect.get("op"):
        return ask.get("path") == effect.get("path") and ask.get("parts") == effect.get("parts")
    parts = ask.get("parts", ())
    return any([effect.get("op"), effect.get("path")] == list(part) for part in parts)


# --- watches ---------------------------------------------------------------------------


@dataclass(slots=True)
class Firing:
    """Watches that fired on one server, for one process and within a short time."""

    fired: list[Event]
    heard: list[Event]
    """The notifications of all of them, or of none: watches without one are apart."""

    @property
    def server(self) -> str:
        """The server that sent them."""
        return str(self.fired[0].detail.get("at", ""))


def firings(trace: Trace) -> list[Firing]:
    """Every firing of a watch, in order; those that go together are put together."""
    pairs: list[Firing] = []
    under_way: dict[str, list[Firing]] = {}
    for event in trace.of_kind(EventKind.WATCH_FIRED, EventKind.NOTIFIED, *ENDS_OF_CONNECTIONS):
        if event.kind == EventKind.WATCH_FIRED:
            pairs.append(Firing([event], []))
            under_way.setdefault(event.node, []).append(pairs[-1])
        elif event.kind == EventKind.NOTIFIED:
            _hear(under_way.get(event.node, []), event)
        else:
            under_way.pop(event.node, None)
    return _together(pairs)


def _hear(under_way: list[Firing], event: Event) -> None:
    for at, firing in enumerate(under_way):
        if _news(firing.fired[0]) == _news(event):
            firing.heard.append(event)
            del under_way[at]
            return


def _news(event: Event) -> tuple[Any, Any]:
    return event.detail.get("what"), event.detail.get("path")


def _together(pairs: Iterable[Firing]) -> list[Firing]:
    """Join firings of one server, process and parent path that follow within a short time.

    A rebalance of a thousand partitions fires thousands of watches, one for each owner.
    """
    found: list[Firing] = []
    latest: dict[tuple[Any, ...], Firing] = {}
    for pair in pairs:
        fired = pair.fired[0]
        place = paths.parent_of(str(fired.detail.get("path", "")))
        key = (fired.node, pair.server, fired.detail.get("what"), place, bool(pair.heard))
        before = latest.get(key)
        if before is not None and fired.t_us - before.fired[-1].t_us <= TOGETHER_US:
            before.fired += pair.fired
            before.heard += pair.heard
        else:
            found.append(pair)
            latest[key] = pair
    return found
