"""Operations and watch firings of a run, put together from their two ends.

A program asks for one thing at a time, so an answer belongs to the oldest open ask of the
same process with the same word and purpose. What a process has asked and never heard of
when it ends stays without an answer. A write also shows where it took effect: the
"applied" or "refused" event, which is found by its zxid, or, where no answer told the
zxid, as the latest that fits.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from model import registry
from model.errors import ConnectionLoss
from model.trace import Event, Trace

Outcome = Literal["ok", "error", "lost"]

KINDS = ("starts", "ends", "connected", "suspended", "expired", "asks", "answers")
ENDS_OF_CONNECTIONS = ("starts", "ends", "suspended", "expired")
TOGETHER_US = 500
"""How soon after one firing another follows that is drawn together with it."""


@dataclass(slots=True)
class Asked:
    """One operation of a process."""

    ask: Event
    server: str
    """Over whose connection it went; empty when there was none, so that it never left."""
    answer: Event | None = None
    effects: list[Event] = field(default_factory=list)
    """The writes that it led to: as they took effect, or were refused."""

    @property
    def word(self) -> str:
        """What was asked: create, get, multi, ..."""
        return str(self.ask.detail.get("op", ""))

    @property
    def purpose(self) -> str:
        """What it was for."""
        return str(self.ask.detail.get("for", ""))

    @property
    def error(self) -> str:
        """The name of the error that it was answered with; empty if with none."""
        answer = self.answer.detail.get("answer") if self.answer is not None else None
        return str(answer["error"]) if isinstance(answer, Mapping) and "error" in answer else ""

    @property
    def outcome(self) -> Outcome:
        """ok, error, or lost: nobody told whether it happened."""
        if self.answer is None or self.error == ConnectionLoss.__name__:
            return "lost"
        return "error" if self.error else "ok"


def operations(trace: Trace) -> list[Asked]:
    """Every operation that was asked, in order."""
    found: list[Asked] = []
    waiting: dict[str, list[Asked]] = {}
    connected_to: dict[str, str] = {}
    for event in trace.of_kind(*KINDS):
        if event.kind == "asks":
            asked = Asked(event, connected_to.get(event.node, ""))
            found.append(asked)
            waiting.setdefault(event.node, []).append(asked)
        elif event.kind == "answers":
            _answer(waiting.get(event.node, []), event)
        elif event.kind == "connected":
            connected_to[event.node] = str(event.detail.get("at", ""))
        else:
            connected_to.pop(event.node, None)
            if event.kind in ("starts", "ends"):
                waiting.pop(event.node, None)
    return found


def _answer(waiting: list[Asked], event: Event) -> None:
    """Give an answer to the oldest operation that it fits."""
    for at, asked in enumerate(waiting):
        if _asks_for(asked.ask) == _asks_for(event):
            asked.answer = event
            del waiting[at]
            return


def _asks_for(event: Event) -> tuple[Any, Any]:
    return event.detail.get("op"), event.detail.get("for")


# --- effects ---------------------------------------------------------------------------


def attach_effects(asked: Iterable[Asked], effects: Iterable[Event]) -> list[Event]:
    """Give each write that took effect, or was refused, to its operation.

    What is left over is returned: effects whose operations are not among these.
    """
    by_zxid: dict[tuple[str, int], Asked] = {}
    by_node: dict[str, list[Asked]] = {}
    for one in asked:
        by_node.setdefault(one.ask.node, []).append(one)
        if one.answer is not None and one.answer.zxid:
            by_zxid[one.ask.node, one.answer.zxid] = one
    left_over = []
    for effect in effects:
        node = str(effect.detail.get("by", ""))
        owner = by_zxid.get((node, effect.zxid)) or _latest(by_node.get(node, ()), effect)
        if owner is None:
            left_over.append(effect)
        else:
            owner.effects.append(effect)
    return left_over


def _latest(candidates: Sequence[Asked], effect: Event) -> Asked | None:
    """The latest operation before an effect that fits it and whose answer told no zxid."""
    before = bisect(candidates, effect.seq, key=lambda one: one.ask.seq)
    for at in range(before - 1, -1, -1):
        one = candidates[at]
        told_zxid = one.answer is not None and one.answer.zxid
        if not told_zxid and _fits(one.ask.detail, effect.detail):
            return one
    return None


def _fits(ask: Mapping[str, Any], effect: Mapping[str, Any]) -> bool:
    """Whether an operation, or one of a pipelined batch, may have had this effect."""
    if ask.get("for") != effect.get("for"):
        return False
    if ask.get("op") == effect.get("op"):
        return ask.get("path") == effect.get("path") and ask.get("parts") == effect.get("parts")
    parts = ask.get("parts", ())
    return any([effect.get("op"), effect.get("path")] == list(part) for part in parts)


# --- watches ---------------------------------------------------------------------------


@dataclass(slots=True)
class Firing:
    """Watches that fired in one place, for one process and closely together."""

    fired: list[Event]
    heard: list[Event]
    """As many as were heard of, or none: those that were not are apart."""

    @property
    def server(self) -> str:
        """The server that told of them."""
        return str(self.fired[0].detail.get("at", ""))


def firings(trace: Trace) -> list[Firing]:
    """Every firing of a watch, in order; those that go together are put together."""
    pairs: list[Firing] = []
    under_way: dict[str, list[Firing]] = {}
    for event in trace.of_kind("fires", "hears", *ENDS_OF_CONNECTIONS):
        if event.kind == "fires":
            pairs.append(Firing([event], []))
            under_way.setdefault(event.node, []).append(pairs[-1])
        elif event.kind == "hears":
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
    """Put together what one server told one process of one place, shortly one after another.

    A rebalance of a thousand partitions makes thousands of firings, one for each owner.
    """
    found: list[Firing] = []
    latest: dict[tuple[Any, ...], Firing] = {}
    for pair in pairs:
        fired = pair.fired[0]
        place = registry.parent_of(str(fired.detail.get("path", "")))
        key = (fired.node, pair.server, fired.detail.get("what"), place, bool(pair.heard))
        before = latest.get(key)
        if before is not None and fired.t_us - before.fired[-1].t_us <= TOGETHER_US:
            before.fired += pair.fired
            before.heard += pair.heard
        else:
            found.append(pair)
            latest[key] = pair
    return found
