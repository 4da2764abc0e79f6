"""A fence around a program of a user: what no world can reproduce stops it with a sentence.

A program that reads the clock of the machine, draws from Python's random numbers, opens a file or
a socket has different runs under one seed, and none of them says why. So each step of its turns
runs under a watch that knows these functions, by whatever name they were imported. What a
program logs carries the time of day, which decides nothing: the module `logging` is let through.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator
from dataclasses import replace
from types import FrameType
from typing import Any

from watchkeeper.checker.contracts.contracts import Forbidden
from watchkeeper.checker.contracts.determinism import FILES_AND_SOCKETS, WATCHED, Watched, watched
from watchkeeper.checker.contracts.source_lines import is_library
from watchkeeper.model.actor.program import Program
from watchkeeper.scenarios.text.errors import expected

FENCED: Watched = {**WATCHED, **FILES_AND_SOCKETS}
"""Module or class, and name -> what a program has called, by the name it knows."""

HOW_TO_ALLOW = "what decides nothing may be allowed by name: simulate(..., allow=[...])"


def check_allowed(names: Collection[str]) -> frozenset[str]:
    """Return the functions that a program may call; ValueError for one that is not fenced."""
    if isinstance(names, str):
        raise TypeError(f"allow is {names!r}; expected a list of names, such as [{names!r}]")
    known = sorted(set(FENCED.values()))
    for name in names:
        if name not in known:
            raise ValueError(f"allow: {expected(name, 'a function that is fenced', known)}")
    return frozenset(names)


def fence(program: Program, allowed: frozenset[str]) -> Program:
    """Return the program with a fence around each step of its turns."""
    words = {word: name for word, name in FENCED.items() if name not in allowed}

    async def turn(zk: Any, me: Any, state: Any) -> Any:
        name = str(getattr(me, "node", "the program"))
        return await _Steps(program.turn(zk, me, state), name, words)

    return replace(program, turn=turn)


class _Steps:
    """A turn, watched whenever it runs and not while it waits."""

    def __init__(self, turn: Any, name: str, words: Watched) -> None:
        self._turn = turn
        self._name = name
        self._words = words

    def __await__(self) -> Generator[Any, Any, Any]:
        step, given = self._turn.send, None
        while True:
            try:
                with watched(self._name, self._words, _is_of_the_program):
                    effect = step(given)
            except StopIteration as done:
                return done.value
            except Forbidden as refused:
                refused.add_note(HOW_TO_ALLOW)
                raise
            try:
                step, given = self._turn.send, (yield effect)
            except GeneratorExit:
                self._turn.close()
                raise
            except BaseException as error:
                step, given = self._turn.throw, error


def _is_of_the_program(frame: FrameType) -> bool:
    """Whether a call is the program's doing, and not that of a library on its own account."""
    caller: FrameType | None = frame
    while caller is not None and is_library(caller.f_code.co_filename):
        if caller.f_code.co_filename == logging.__file__:
            return False
        caller = caller.f_back
    return True
