"""Validation of the arguments of `explore`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from watchkeeper.checker.user_model.system import Claims
from watchkeeper.model.actor.program import Program
from watchkeeper.model.plan.bounds import FAULTS


def check_arguments(
    programs: Any,
    claims: Claims,
    faults: Any,
    together: Any,
    max_states: Any,
    max_seconds: Any,
) -> None:
    """Raise TypeError or ValueError for an argument that `explore` does not take."""
    _check_programs(programs)
    _check_claims(claims)
    _check_faults(faults, len(programs))
    _check_number("together", together, 0, int)
    _check_number("max_states", max_states, 1, int)
    _check_number("max_seconds", max_seconds, 0, int | float)


def _check_number(name: str, value: Any, least: int, kind: Any) -> None:
    if value is None:
        return
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} has to be a number, and is {value!r}")
    if value < least:
        raise ValueError(f"{name} has to be {least} or more, and is {value!r}")


def _check_programs(programs: Any) -> None:
    if not isinstance(programs, Mapping):
        raise TypeError(f"programs have to be a mapping, name -> Program, and are {programs!r}")
    if not programs:
        raise ValueError("there has to be a program at least")
    for name, program in programs.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a program has to be a word, and is {name!r}")
        if not isinstance(program, Program):
            raise TypeError(f"{name} has to be a Program, and is {program!r}")


def _check_claims(claims: Claims) -> None:
    kinds = {
        "always": claims.always,
        "at_rest": claims.at_rest,
        "eventually": claims.eventually,
        "sometimes": claims.sometimes,
    }
    for kind, named in kinds.items():
        if not isinstance(named, Mapping):
            raise TypeError(f"{kind} has to be a mapping, name -> function, and is {named!r}")
        for name, claim in named.items():
            if not callable(claim):
                raise TypeError(f"the claim {name!r} has to be a function of a state")
    names = Counter(name for named in kinds.values() for name in named)
    for name, count in names.items():
        if count > 1:
            raise ValueError(f"{count} claims are called {name!r}")


def _check_faults(faults: Any, programs: int) -> None:
    if not isinstance(faults, Mapping):
        raise TypeError(f"faults have to be a mapping, kind -> how many, and are {faults!r}")
    for kind, count in faults.items():
        if kind not in FAULTS:
            near = get_close_matches(str(kind), FAULTS, 1)
            meant = f"; did you mean {str(near[0])!r}?" if near else ""
            raise ValueError(f"there is no fault {kind!r} (there are {', '.join(FAULTS)}){meant}")
        _check_number(kind, count, 0, int)
    if faults.get("join", 0) > programs:
        raise ValueError(f"{faults['join']} programs cannot join; there are {programs}")
