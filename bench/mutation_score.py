"""Mutation score: how many small mutants of the protocol code runs, searches and tests kill.

    python bench/mutation_score.py [--only MODULES] [--all] [--sample N --seed S] [--jobs N]
                                   [--by KINDS] [--killers EXPRESSION] [--out FILE] [--add FILE]
                                   [--json]

A mutant is one edit of one of the modules that consumers, brokers and the administrator run: a
comparison turned round, a bound moved by one, a statement removed, a handler that raises. It
is killed by a run or a search with another judgement than without the mutant: a scenario that
is not as it expects, another set of violated properties, an error, a search or a run that does
not end. Another trace or number of states is no kill.

`bench/mutation/survivors.yaml` explains each mutant that neither kills: it is equivalent, or a
survivor. The exit code is 1 if too few are killed, or if the file does not match what is found.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.mutation.catalogue import MODULES, SHARE, Mutant, all_mutants, drawn, mixed, sampled
from bench.mutation.child_process import load_needed
from bench.mutation.outcome import Kind, Verdict
from bench.mutation.score import Measure, bases_of, tests_that_fail, verdicts
from bench.mutation.survivors import Explained, Explanation, explained, stale
from bench.support.report import Bar, Report, once, parser_of

LEAST_KILLED = 90.0
"""Percent of the mutants that are not equivalent."""
COLUMNS = (
    *("module", "mutants", "equivalent", "simulation", "search", "both", "either", "tests"),
    "survivors",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants, and print a row for each module."""
    parser = _parser()
    given = parser.parse_args(arguments)
    mutants = _chosen(parser, given)
    os.environ["WATCHKEEPER_SAME_EXAMPLES"] = "1"
    measure = Measure(given.jobs, _kinds(parser, given.by))
    found = _judged(parser, mutants, measure, given.killers, given.out)
    if given.add is not None:
        found = _with_earlier(found, mutants, given.add)
    entries = explained()
    wrong = mismatches(found, entries, mutants)
    report = report_of(mutants, found, entries)
    report.notes += wrong
    if given.out is not None:
        given.out.write_text("".join(map(_json_line, found)))
    report.show(as_json=given.json)
    return 1 if wrong or any(bar.verdict != "met" for bar in report.bars) else 0


def _judged(
    parser: ArgumentParser,
    mutants: Sequence[Mutant],
    measure: Measure,
    killers: str,
    out: Path | None,
) -> list[Verdict]:
    """Judge the mutants, and write each verdict as it comes.

    A run that is ended early has judged a fair sample of them.
    """
    modules = tuple(dict.fromkeys(mutant.module for mutant in mutants))
    load_needed(tests=Kind.TESTS in measure.kinds)
    if Kind.TESTS in measure.kinds and (failing := tests_that_fail(modules, measure.jobs)):
        parser.error(f"{'; '.join(failing)}; mend them first, or leave tests out of --by")
    base = bases_of(modules, measure, killers)
    _tell(f"{len(mutants)} mutants, {len(base)} runs and searches")
    found = []
    with (out or Path(os.devnull)).open("w") as file:
        for verdict in verdicts(mixed(mutants), measure, base):
            found.append(verdict)
            file.write(_json_line(verdict))
            file.flush()
            _tell(f"{len(found)}: {_in_a_line(verdict)}")
    return found


def _json_line(verdict: Verdict) -> str:
    return f"{json.dumps(verdict.to_json())}\n"


def _with_earlier(
    found: Sequence[Verdict], mutants: Sequence[Mutant], path: Path
) -> list[Verdict]:
    """Add the kills that an earlier run has found of the same mutants."""
    rows = map(Verdict.from_json, map(json.loads, path.read_text().splitlines()))
    lines = {mutant.name: mutant.edit.text for mutant in mutants}
    earlier = {one.mutant: one for one in rows if lines.get(one.mutant) == one.text}
    return [
        one.with_kills_of(earlier[one.mutant]) if one.mutant in earlier else one for one in found
    ]


def _kinds(parser: ArgumentParser, by: str) -> tuple[Kind, ...]:
    known = {kind.value: kind for kind in Kind}
    unknown = [name for name in by.split(",") if name not in known]
    if unknown:
        parser.error(f"--by {unknown[0]}: expected some of {', '.join(known)}")
    return tuple(kind for name, kind in known.items() if name in by.split(","))


def _parser() -> ArgumentParser:
    parser = parser_of(__doc__, clock=False)
    names = ",".join(module.name for module in MODULES)
    parser.add_argument("--only", default=names, help="modules, or mutants by name (all modules)")
    parser.add_argument("--all", action="store_true", help=f"all mutants, not one of {SHARE}")
    parser.add_argument("--sample", type=int, help="so many of all mutants, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--killers", default="", help="an expression: only these (all)")
    every = ",".join(kind.value for kind in Kind)
    parser.add_argument("--by", default=every, help=f"what judges the mutants ({every})")
    parser.add_argument("--out", type=Path, help="where the verdict on each mutant is written")
    parser.add_argument("--add", type=Path, help="such a file, whose kills are added")
    return parser


def _chosen(parser: ArgumentParser, given: Namespace) -> list[Mutant]:
    """Return the mutants that the options select."""
    wanted = given.only.split(",")
    every = all_mutants()
    known = {module.name for module in MODULES} | {mutant.name for mutant in every}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        names = ", ".join(module.name for module in MODULES)
        parser.error(f"--only {unknown[0]}: expected a mutant, or some of {names}")
    of_modules = [mutant for mutant in every if mutant.module.name in wanted]
    if given.sample is not None:
        of_modules = sampled(of_modules, given.sample, given.seed)
    elif not given.all:
        of_modules = drawn(of_modules)
    by_name = [mutant for mutant in every if mutant.name in wanted]
    return [*of_modules, *(mutant for mutant in by_name if mutant not in of_modules)]


# --- the report ------------------------------------------------------------------------


def mismatches(
    found: Sequence[Verdict], entries: dict[str, Explained], mutants: Sequence[Mutant]
) -> list[str]:
    """Return a sentence for each survivor without an explanation, and each wrong entry."""
    judged = {verdict.mutant for verdict in found}
    of_run = {name: entry for name, entry in entries.items() if name in judged}
    sentences = stale(of_run, mutants)
    for verdict in found:
        entry = entries.get(verdict.mutant)
        if verdict.survives and entry is None:
            sentences.append(f"survives, and is not explained: {_in_a_line(verdict)}")
        elif not verdict.survives and entry is not None:
            sentences.append(f"is explained, and killed: {_in_a_line(verdict)}")
    return sentences


def report_of(
    mutants: Sequence[Mutant],
    found: Sequence[Verdict],
    entries: dict[str, Explained],
) -> Report:
    """Put the table together."""
    report = Report("Mutation score", COLUMNS)
    module_of = {mutant.name: mutant.module.name for mutant in mutants}
    for module in dict.fromkeys(module_of.values()):
        rows = [verdict for verdict in found if module_of[verdict.mutant] == module]
        report.rows.append([module, *_figures(rows, entries)])
    report.rows.append(["all", *_figures(found, entries)])
    counted = [one for one in found if not _is_equivalent(one, entries)]
    killed = sum(not one.survives for one in counted)
    share = 100.0 * killed / len(counted) if counted else 100.0
    report.bars.append(
        Bar("killed by simulation or search", "at least", LEAST_KILLED, "%", once(share))
    )
    quiet = sum(one.survives and not one.differs_in for one in found)
    report.notes.append(f"survivors that change no trace and no number of states: {quiet}")
    report.data["mutants"] = [one.to_json() for one in found]
    return report


def _figures(rows: Sequence[Verdict], entries: dict[str, Explained]) -> list[str]:
    equivalent = sum(_is_equivalent(one, entries) for one in rows)
    simulated = {one.mutant for one in rows if Kind.SIMULATION in one.kills}
    searched = {one.mutant for one in rows if Kind.SEARCH in one.kills}
    tested = sum(Kind.TESTS in one.kills for one in rows)
    either = len(simulated | searched)
    figures = (
        *(len(rows), equivalent, len(simulated), len(searched), len(simulated & searched)),
        *(either, tested, len(rows) - equivalent - either),
    )
    return list(map(str, figures))


def _is_equivalent(verdict: Verdict, entries: dict[str, Explained]) -> bool:
    entry = entries.get(verdict.mutant)
    is_explained = entry is not None and entry.explanation is Explanation.EQUIVALENT
    return is_explained and verdict.survives


def _in_a_line(verdict: Verdict) -> str:
    kills = ", ".join(
        f"{kind.value}: {kill.killer}: {kill.judgement}" if kind is not Kind.TESTS else "tests"
        for kind, kill in verdict.kills.items()
    )
    if not kills:
        kills = (
            f"no kill, executed by {verdict.executed_by}, differs in {len(verdict.differs_in)}"
        )
    replacement = " ".join(verdict.replacement.split())
    return f"{verdict.mutant} line {verdict.line}: {verdict.text} -> {replacement}: {kills}"


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
