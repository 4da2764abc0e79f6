"""The search of brokers that elect a controller: what it found, as text, JSON and a page."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from watchkeeper.api import folder
from watchkeeper.api.index import say_in_search
from watchkeeper.api.tables import verdict_text
from watchkeeper.check.check import exit_code_of
from watchkeeper.check.folder import ABOUT, PAGE
from watchkeeper.check.limits import limit_words
from watchkeeper.check.report import labelled_line, print_counterexample, print_files
from watchkeeper.checker.control_plane.brokers import ALWAYS, AT_REST, search
from watchkeeper.checker.search.search import Limits, Progress
from watchkeeper.checker.user_model.explore import MOST_STATES, ExploreResult
from watchkeeper.console.progress import timed
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.controller.state_machines.variants import CONTROLLERS
from watchkeeper.model.counterexample.counterexample import Counterexample
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.reports.explorer.html import write_counterexample_html

PROPERTY_NAMES = {name: name.replace(" ", "-") for name in (*ALWAYS, *AT_REST)}
"""Property -> its word on the command line."""
DEFAULT_BROKERS = 2
NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Searched:
    """A search of brokers, and what it was given."""

    variant: str
    faults: tuple[str, ...]
    """The kinds, each once."""
    properties: tuple[str, ...]
    brokers: int
    found: ExploreResult
    limits: Limits

    @property
    def counterexample(self) -> Counterexample | None:
        """A shortest path to the violation."""
        path = self.found.counterexample
        title = f"{counted(self.brokers, 'broker')} that elect a controller"
        return path and replace(path, scenario=title, variant=self.variant)

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return exit_code_of(self.found.verdict)

    @property
    def name(self) -> str:
        """The name of its folder: what tells it from other searches."""
        size = [] if self.brokers == DEFAULT_BROKERS else [f"{self.brokers}-brokers"]
        claims = [PROPERTY_NAMES[name] for name in self._chosen]
        faults = [_word(kind) for kind in self.faults] or ["no-fault"]
        return "-".join(("brokers", self.variant, *faults, *claims, *size, "explore"))

    @property
    def bound(self) -> str:
        """The bound in words."""
        faults = [f"1 {kind.replace('_', ' ')}" for kind in self.faults] or ["no fault"]
        return ", ".join((counted(self.brokers, "broker"), "1 topic of 1 partition", *faults))

    @property
    def command(self) -> str:
        """The command that repeats the search."""
        words = ["watchkeeper", "explore-brokers", "--variant", self.variant]
        for kind in self.faults:
            words += ["--fault", _word(kind)]
        for name in self._chosen:
            words += ["--property", PROPERTY_NAMES[name]]
        if self.brokers != DEFAULT_BROKERS:
            words += ["--brokers", str(self.brokers)]
        return " ".join([*words, *limit_words(self.limits)])

    @property
    def _chosen(self) -> tuple[str, ...]:
        """The properties, where they are not all."""
        return () if len(self.properties) == len(PROPERTY_NAMES) else self.properties


def _word(kind: str) -> str:
    return kind.replace("_", "-")


def properties_of(words: Collection[str]) -> tuple[str, ...]:
    """Return the properties that these words of the command line name; all for no word."""
    return tuple(name for name, word in PROPERTY_NAMES.items() if not words or word in words)


def explore_brokers(
    variant: str,
    faults: tuple[str, ...],
    properties: tuple[str, ...],
    brokers: int,
    *,
    limits: Limits = NO_LIMITS,
    tell: Callable[[Progress], None] | None = None,
) -> Searched:
    """Search the brokers of a variant for the nearest violation of these properties."""
    with INTERRUPTS.noted(), timed("search"):
        found = search(
            CONTROLLERS[variant],
            dict.fromkeys(faults, 1),
            tuple(name for name in properties if name in AT_REST),
            always=tuple(name for name in properties if name in ALWAYS),
            brokers=brokers,
            tell=tell,
            max_states=MOST_STATES if limits.states is None else limits.states,
            max_seconds=limits.seconds,
        )
    return Searched(variant, faults, properties, brokers, found, limits)


def write(searched: Searched, out: Path) -> list[str]:
    """Fill the folder of a search, and return the paths of its files."""
    home = folder.prepare(out, searched.name)
    folder.clear(home, (PAGE,))
    names, path = [folder.VERDICT], searched.counterexample
    if path is not None:
        names.append(write_counterexample_html(path, home))
    files = [str(home / name) for name in names]
    folder.write_verdict(home, to_json(searched, files))
    say_in_search(home, ABOUT, word=searched.found.verdict.value, command=searched.command)
    return files


def to_json(searched: Searched, files: list[str]) -> dict[str, Any]:
    """Return the value that `--json` prints."""
    found = searched.found
    return {
        "variant": searched.variant,
        "properties": list(searched.properties),
        "violated": found.violated or None,
        "faults": list(searched.faults),
        "world": "explore",
        "verdict": found.verdict.value,
        "bound": searched.bound,
        "stopped": found.stopped,
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "seconds": round(found.seconds, 3),
        "steps": None if found.counterexample is None else len(found.counterexample.steps),
        "command": searched.command,
        "files": files,
    }


def report(searched: Searched, to: Console, files: list[str]) -> None:
    """Print what a search found."""
    found, path = searched.found, searched.counterexample
    names = found.violated or ", ".join(searched.properties)
    head = f"{counted(searched.brokers, 'broker')}, {searched.variant}, {names}: "
    to.print(Text.assemble(head, verdict_text(found.verdict)), soft_wrap=True)
    if path is not None:
        print_counterexample(path, to)
    to.print()
    labelled_line(to, "bound", searched.bound)
    end = found.stopped or ("a violation was found" if found.violated else "all of them")
    size = f"{found.states:,} states and {found.transitions:,} transitions, {end}"
    labelled_line(to, "search", size)
    labelled_line(to, "took", f"{found.seconds:.1f} s")
    print_files(to, searched.command, files)
