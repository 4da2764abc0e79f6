"""A member that finds out the layout of a live registry before it joins.

Topics decide. In the 0.7 layout a topic has a child for each of its brokers, named by the
broker's id; in the 0.8 layout its data is an assignment in JSON, and it has a child `partitions`.
Without a topic the registrations of brokers decide: 0.8 writes JSON, 0.7 does not. In an empty
registry the layout is the variant's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from watchkeeper.model.actor.effects import close_session, connected, new_session
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, NoNode, SessionExpired
from watchkeeper.model.actor.operations import (
    GetChildren,
    GetData,
    Operation,
    Pipelined,
    ZooKeeper,
)
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import Layout

MOST_READ = 200
"""So many topics, and so many brokers, are looked at."""


@dataclass(frozen=True, slots=True)
class Detection:
    """The configuration of a member, and the program that runs it."""

    me: Any
    """A frozen dataclass with a `variant` and a `layout`."""
    program_of: Callable[[Any], Program]

    @property
    def variant(self) -> Variant:
        """The variant of the member."""
        return self.me.variant  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Detected:
    """The program of the layout that was found, and the state of that program."""

    program: Program
    state: Any


def detecting(me: Any, program_of: Callable[[Any], Program]) -> Program:
    """Return a program that goes on as that of `me` in the layout that it finds."""
    return Program(turn, Detection(me, program_of), None)


async def turn(zk: ZooKeeper, me: Detection, state: Detected | None) -> Detected | Ended | None:
    """Find the layout in the first turn; take a turn of the program in each later one."""
    if state is None:
        return await _first_turn(me)
    after = await state.program.turn(zk, state.program.me, state.state)
    return after if isinstance(after, Ended) else Detected(state.program, after)


async def _first_turn(me: Detection) -> Detected | Ended | None:
    await new_session()
    try:
        found = await _found()
    except ConnectionLoss:
        with suppress(SessionExpired):
            await connected()
        return None
    except SessionExpired:
        return None
    if (why := _refusal(me.variant, found)) is not None:
        await close_session()
        return Ended(why, failed=True)
    layout = next(iter(found), me.variant.layouts[0])
    program = me.program_of(replace(me.me, layout=layout))
    return Detected(program, program.initial_state)


def _refusal(variant: Variant, found: dict[Layout, str]) -> str | None:
    """Return why no layout can be chosen; None if one can."""
    if len(found) > 1:
        where = " and ".join(f"{path} is of layout {layout}" for layout, path in found.items())
        return f'the registry has two layouts: {where}; choose one, layout="0.7" or layout="0.8"'
    for layout, path in found.items():
        if layout not in variant.layouts:
            runs_on = " or ".join(variant.layouts)
            return f"{path} is of layout {layout}, and {variant.name} runs on layout {runs_on}"
    return None


# --- reading ---------------------------------------------------------------------------


async def _found() -> dict[Layout, str]:
    """Return the layouts that are in use, each with a znode that shows it."""
    topics = await _below(paths.TOPICS)
    found = dict(reversed([*_of_topics(topics, *await _topics(topics))]))
    if found:
        return found
    brokers = await _below(paths.BROKER_IDS)
    data = await _all([GetData(path) for path in brokers])
    return dict(reversed([*_of_brokers(brokers, data)]))


async def _below(path: str) -> list[str]:
    try:
        names = await GetChildren(path)
    except NoNode:
        return []
    return [f"{path}/{name}" for name in sorted(names)[:MOST_READ]]


async def _topics(topics: list[str]) -> tuple[list[Any], list[Any]]:
    children = await _all([GetChildren(path) for path in topics])
    return children, await _all([GetData(path) for path in topics])


async def _all(reads: list[Operation[Any]]) -> list[Any]:
    """Return the answer to each read; None for a znode that cannot be read."""
    answers = await Pipelined(tuple(reads)) if reads else ()
    return [None if isinstance(answer, Failure) else answer for answer in answers]


def _of_topics(
    topics: list[str], children: list[Any], views: list[Any]
) -> Iterator[tuple[Layout, str]]:
    for path, names, view in zip(topics, children, views, strict=True):
        if any(name.isdecimal() for name in names or ()):
            yield "0.7", path
        elif "partitions" in (names or ()) or (view is not None and _is_json(view.data)):
            yield "0.8", path


def _of_brokers(brokers: list[str], views: list[Any]) -> Iterator[tuple[Layout, str]]:
    for path, view in zip(brokers, views, strict=True):
        if view is not None:
            yield "0.8" if _is_json(view.data) else "0.7", path


def _is_json(data: bytes | None) -> bool:
    return (data or b"").lstrip().startswith(b"{")
