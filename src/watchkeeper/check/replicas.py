"""The search of the replicas of one partition: what it found, as text, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from watchkeeper.api import folder
from watchkeeper.api.index import say_in_search
from watchkeeper.api.tables import verdict_text
from watchkeeper.check.check import exit_code_of
from watchkeeper.check.folder import ABOUT
from watchkeeper.check.limits import limit_words, with_memory
from watchkeeper.check.report import labelled_line, print_files
from watchkeeper.checker.replication.counterexample import counterexample_of
from watchkeeper.checker.replication.partition import Bounds, Fault
from watchkeeper.checker.replication.search import PROPERTIES, Result, search
from watchkeeper.checker.search.search import Limits, Progress
from watchkeeper.console.progress import timed
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.counterexample.replicas import ReplicasCounterexample
from watchkeeper.model.properties.verdicts import Verdict, counted
from watchkeeper.model.replication.truncation import RULES
from watchkeeper.model.replication.variants import REPLICATIONS, ReplicationVariant
from watchkeeper.reports.replicas.html import NAME as PAGE
from watchkeeper.reports.replicas.html import write_replicas_html

FAULTS = {fault.name.lower().replace("_", "-"): fault for fault in Fault}
"""The word of the command line -> the fault."""
RULE_NAMES = {rule.name.lower().replace(" ", "-"): rule for rule in RULES}
"""The word of the command line -> the rule."""
PROPERTY_NAMES = {name: name.lower().replace(" ", "-") for name in PROPERTIES}
"""Property -> its word on the command line."""
DEFAULT_PROPERTY = "strong ISR"
DEFAULT_BOUNDS = Bounds(replicas=2, log=2, records=2, epochs=3)
SIZES = ("replicas", "log", "records", "epochs")


@dataclass(frozen=True, slots=True)
class Searched:
    """A search of replicas, and what it was given."""

    variant: str
    rule: str | None
    """The rule by which followers cut their logs, where it is not that of the variant."""
    violates: str
    """The property."""
    faults: tuple[str, ...]
    result: Result
    counterexample: ReplicasCounterexample | None
    limits: Limits

    @property
    def verdict(self) -> Verdict:
        """The verdict on the property within the bound."""
        if self.counterexample is not None:
            return Verdict.VIOLATED
        return Verdict.HOLDS if self.result.is_complete else Verdict.UNKNOWN

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return exit_code_of(self.verdict)

    @property
    def name(self) -> str:
        """The name of its folder: what tells it from other searches."""
        size = [f"{value}-{word}" for word, value in self._sizes]
        claim = [] if self.violates == DEFAULT_PROPERTY else [PROPERTY_NAMES[self.violates]]
        rule = [self.rule] if self.rule else []
        faults = self.faults or ("no-fault",)
        return "-".join(("replicas", self.variant, *rule, *faults, *claim, *size, "explore"))

    @property
    def bound(self) -> str:
        """The bound in words."""
        strikes = [f"{FAULTS[fault].value}, once" for fault in self.faults]
        return "; ".join((str(self.result.bounds), *(strikes or ["no fault"])))

    @property
    def command(self) -> str:
        """The command that repeats the search."""
        words = ["watchkeeper", "explore-replicas", "--variant", self.variant]
        words += ["--rule", self.rule] if self.rule else []
        for fault in self.faults:
            words += ["--fault", fault]
        if self.violates != DEFAULT_PROPERTY:
            words += ["--property", PROPERTY_NAMES[self.violates]]
        for word, value in self._sizes:
            words += [f"--{word}", str(value)]
        return " ".join([*words, *limit_words(self.limits)])

    @property
    def _sizes(self) -> list[tuple[str, int]]:
        """The sizes that differ from the default ones."""
        bounds = self.result.bounds._asdict()
        default = DEFAULT_BOUNDS._asdict()
        return [(word, bounds[word]) for word in SIZES if bounds[word] != default[word]]


def variant_of(name: str, rule: str | None) -> ReplicationVariant:
    """Return a variant, with another rule by which followers cut their logs."""
    variant = REPLICATIONS[name]
    return variant if rule is None else replace(variant, truncation=RULE_NAMES[rule])


def explore_replicas(
    variant: str,
    rule: str | None,
    bounds: Bounds,
    faults: tuple[str, ...],
    violates: str,
    *,
    limits: Limits,
    tell: Callable[[Progress], None] | None = None,
) -> Searched:
    """Search the replicas of a variant for the nearest violation of a property."""
    within = bounds._replace(faults=frozenset(FAULTS[fault] for fault in faults))
    with INTERRUPTS.noted(), timed("search"):
        result = search(
            variant_of(variant, rule),
            within,
            properties=(violates,),
            limits=with_memory(limits),
            tell=tell,
        )
    is_found = violates in result.paths
    found = counterexample_of(result, violates) if is_found else None
    return Searched(variant, rule, violates, faults, result, found, limits)


# --- what it leaves --------------------------------------------------------------------


def write(searched: Searched, out: Path) -> list[str]:
    """Fill the folder of a search, and return the paths of its files."""
    home = folder.prepare(out, searched.name)
    folder.clear(home, (PAGE,))
    names = [folder.VERDICT]
    if searched.counterexample is not None:
        names.append(write_replicas_html(searched.counterexample, home))
    files = [str(home / name) for name in names]
    folder.write_verdict(home, to_json(searched, files))
    say_in_search(home, ABOUT, word=searched.verdict.value, command=searched.command)
    return files


def to_json(searched: Searched, files: list[str]) -> dict[str, Any]:
    """Return the value that `--json` prints."""
    result, found = searched.result, searched.counterexample
    return {
        "variant": searched.variant,
        "rule": result.variant.truncation.name,
        "property": searched.violates,
        "faults": list(searched.faults),
        "world": "explore",
        "verdict": searched.verdict.value,
        "bound": searched.bound,
        "complete": result.is_complete,
        "stopped": result.stopped,
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "seconds": round(result.seconds, 3),
        "proof": None if found is None else found.proof,
        "steps": None if found is None else [step.text for step in found.steps],
        "command": searched.command,
        "files": files,
    }


def report(searched: Searched, to: Console, files: list[str]) -> None:
    """Print what a search found."""
    result = searched.result
    head = f"{counted(result.bounds.replicas, 'replica')}, {searched.variant}"
    rule = f", truncation by {result.variant.truncation.name}"
    verdict = verdict_text(searched.verdict)
    to.print(Text.assemble(f"{head}{rule}, {searched.violates}: ", verdict), soft_wrap=True)
    for line in _path(searched.counterexample):
        to.print(line, soft_wrap=True)
    to.print()
    labelled_line(to, "bound", searched.bound)
    end = result.stopped or "all of them"
    labelled_line(
        to,
        "search",
        f"{result.states:,} states and {result.transitions:,} transitions, {end}",
    )
    labelled_line(to, "took", f"{result.seconds:.1f} s")
    print_files(to, searched.command, files)


def _path(found: ReplicasCounterexample | None) -> Iterator[Text]:
    """Yield the steps of a counterexample, and the proof."""
    if found is None:
        return
    steps = counted(len(found.steps), "step")
    yield Text(f"the shortest way to violate {found.violates}, {steps}:")
    for step in found.steps:
        style = "bold red" if step.fault else ""
        yield Text.assemble((f"{step.number:4}  ", "dim"), (step.text, style))
    yield Text(found.proof, "bold")
