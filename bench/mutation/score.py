"""The verdict on each mutant: which simulation, which search and whether a test kills it.

A mutant is given to the killers that execute its line, the quickest first, until one kills it;
of each kind by itself. Large searches come last, and judge only what nothing else kills. A
mutant outside of functions takes effect at the import, so every killer judges it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bench.mutation.catalogue import HOME, Module, Mutant
from bench.mutation.child_process import RunsOn, import_edited, in_children, within_cpu
from bench.mutation.coverage import KILLERS, bases
from bench.mutation.outcome import Base, Kill, Kind, Outcome, Verdict

TESTS_CPU_S = 120.0
DIED = "the process ended"
"""The judgement of a child that used up its memory or its time."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The options of a measure."""

    jobs: int = 1
    kinds: tuple[Kind, ...] = tuple(Kind)
    """What judges the mutants."""


def bases_of(modules: Sequence[Module], measure: Measure, killers: str = "") -> list[Base]:
    """Return the killers without a mutant; a child imports watchkeeper for it.

    `killers` is a regular expression: those in whose names it is found.
    """

    def find(wanted: tuple[Module, ...]) -> list[Base]:
        return bases(wanted, measure.kinds, measure.jobs, killers)

    [(_, found)] = in_children(find, [tuple(modules)], 1)
    assert found is not None, "every killer runs without a mutant"
    return found


def verdicts(
    mutants: Sequence[Mutant], measure: Measure, base: Sequence[Base]
) -> Iterator[Verdict]:
    """Yield the verdict on each mutant, in the order in which they end."""

    def judge(mutant: Mutant) -> Verdict:
        return _verdict(mutant, measure, base)

    for mutant, verdict in in_children(judge, mutants, measure.jobs):
        if verdict is None:
            kills = {kind: Kill("", DIED) for kind in measure.kinds}
            verdict = _described(mutant, kills, executing(mutant, base))
        yield verdict


def executing(mutant: Mutant, base: Iterable[Base]) -> list[Base]:
    """Return the killers that execute the line of a mutant."""
    edit = mutant.edit
    lines = range(edit.line, edit.last_line + 1)
    return [
        killer
        for killer in base
        if edit.is_at_import or not killer.lines[mutant.module.name].isdisjoint(lines)
    ]


def _described(
    mutant: Mutant,
    kills: dict[Kind, Kill],
    killers: Sequence[Base],
    differs_in: Sequence[str] = (),
    cpu_s: float = 0.0,
) -> Verdict:
    edit = mutant.edit
    return Verdict(
        mutant.name,
        edit.line,
        edit.text,
        edit.replacement,
        kills,
        len(killers),
        tuple(differs_in),
        cpu_s,
    )


# --- in a child ------------------------------------------------------------------------


def _verdict(mutant: Mutant, measure: Measure, base: Sequence[Base]) -> Verdict:
    """Judge one mutant. Runs in a child, which imports it."""
    begun_s = time.process_time()
    _silence()
    import_edited(mutant)
    killers = executing(mutant, base)
    kills: dict[Kind, Kill] = {}
    differs_in: list[str] = []
    try:
        # Before pytest begins: its own import hook would take the original.
        import_module(mutant.module.imported_as)
        run_of = _runs() if killers else {}
    except Exception as error:
        kill = Kill("the import", f"{type(error).__name__}: {error}")
        kills = dict.fromkeys(measure.kinds, kill)
        run_of = {}
    for killer in sorted(killers, key=lambda killer: killer.is_large):
        if killer.kind in kills or (killer.is_large and kills):
            continue
        outcome = run_of[killer.kind, killer.killer](killer.outcome)
        if outcome.judgement != killer.outcome.judgement:
            kills[killer.kind] = Kill(killer.killer, outcome.judgement[:200])
        elif outcome.digest != killer.outcome.digest:
            differs_in.append(killer.killer)
    if Kind.TESTS in measure.kinds:
        failed = _failed_tests(mutant.module)
        if failed:
            kills[Kind.TESTS] = Kill(" ".join(mutant.module.tests), failed)
    cpu_s = round(time.process_time() - begun_s, 2)
    return _described(mutant, kills, killers, differs_in, cpu_s)


def _runs() -> dict[tuple[Kind, str], Callable[[Outcome], Outcome]]:
    killers: Iterable[Any] = import_module(KILLERS).killers()
    return {(killer.kind, killer.name): killer.outcome for killer in killers}


def _silence() -> None:
    """Drop what the judged code and its tests print."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _failed_tests(module: Module) -> str:
    """Run the tests of a module; return why they failed, or nothing."""
    os.chdir(HOME)
    pytest, hypothesis = import_module("pytest"), import_module("hypothesis")
    hypothesis.settings.register_profile(  # a failure is enough: no smaller example is needed
        "mutation_score",
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        derandomize=True,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile", "mutation_score"]
    try:
        with within_cpu(TESTS_CPU_S):
            code = pytest.main([*options, *module.tests])
    except RunsOn:
        return "they do not end"
    return "" if code == 0 else f"exit code {int(code)}"


def tests_that_fail(modules: Sequence[Module], jobs: int) -> list[str]:
    """Return the modules whose tests fail without a mutant: they cannot judge one."""

    def judge(module: Module) -> str:
        _silence()
        return _failed_tests(module)

    return [
        f"the tests of {module.name}: {failed or DIED}"
        for module, failed in in_children(judge, list(modules), jobs)
        if failed != ""
    ]
