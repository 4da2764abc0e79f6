"""The result of a run: verdicts, trace, effects, expectation; and its report as text and JSON."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, field
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as PrintedTable
from rich.text import Text

from watchkeeper.api.named_profile import NamedProfile
from watchkeeper.api.synopsis import synopsis
from watchkeeper.api.tables import (
    LIMIT_STYLE,
    PLAIN_WIDTH,
    folded,
    names_table,
    plain_console,
    plain_table,
    property_table,
    show_table,
    verdict_text,
)
from watchkeeper.console.exit import Stop
from watchkeeper.model.audit.retry_budget import PatienceWarning, warnings_of
from watchkeeper.model.judgement.judge import Judgement
from watchkeeper.model.judgement.signature import signatures_of
from watchkeeper.model.plan.bounds import variants_in, variants_in_words
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.plan.roles import role_of
from watchkeeper.model.properties.progress import ChangeSeen
from watchkeeper.model.properties.verdicts import (
    Finding,
    Verdict,
    counted,
    duration,
    seconds,
    verdict_word,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.figure.title import WORLDS
from watchkeeper.reports.messages.message_path import follows_messages, message_path, numbers
from watchkeeper.scenarios import Scenario
from watchkeeper.scenarios.schema.schema import Expectation, ViolatedModel
from watchkeeper.scenarios.text.units import duration_text

if TYPE_CHECKING:
    from pyarrow import Table

    from watchkeeper.reports.why.chain import Chain

MOST_CHANGES = 12
"""Rows of the table of members that joined and left."""


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """A run and its verdict.

    `str(result)` is its report, `result.to_json()` what `watchkeeper run --json` prints.
    """

    scenario: Scenario
    plan: Plan
    seed: int
    trace: Trace
    effects: tuple[FaultEffect, ...]
    judgement: Judgement
    operations: int
    is_repeated: bool = False
    """Whether a second run of the same seed gave the same trace."""
    options: tuple[str, ...] = ()
    """Further options of the command that made the run."""
    profile: NamedProfile | None = None
    """The latencies of the simulation; None for the default ones."""
    zookeeper: str = ""
    """Which ZooKeeper a live run has used, in words."""
    _computed: dict[str, Any] = field(default_factory=dict, compare=False)
    """What was computed from the trace: it is computed at its first use, and once."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run: holds, violated, unknown."""
        return self.judgement.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every property with its verdict and its evidence."""
        return self.judgement.findings

    @property
    def holds(self) -> bool:
        """Whether every property that counts holds."""
        return self.verdict is Verdict.HOLDS

    @property
    def violated(self) -> list[str]:
        """The names of the properties that are violated."""
        return self.judgement.violated()

    @property
    def why(self) -> tuple[Chain, ...]:
        """For each violated property the events of the trace that led there, in their order."""
        if "why" not in self._computed:
            self._computed["why"] = _chains(self.trace, self.findings)
        found: tuple[Chain, ...] = self._computed["why"]
        return found

    @property
    def fingerprint(self) -> str:
        """The hash of the trace."""
        return self.trace.fingerprint

    @property
    def expectation(self) -> Expectation | None:
        """The expectation of the scenario for this variant; None for your own program."""
        if self.plan.has_own_program:
            return None
        return self.scenario.expectations.get(self.plan.variant)

    @property
    def met(self) -> bool | None:
        """Whether the run is as the scenario expects; None where the scenario says nothing."""
        if self.plan.has_own_program:
            return None
        wanted = self.scenario.expected_of(self.plan.variant)
        return None if wanted is None else wanted.met_by(self.judgement)

    @property
    def warnings(self) -> tuple[PatienceWarning, ...]:
        """The warnings on the settings of the scenario."""
        return warnings_of(self.plan)

    @property
    def known_limit(self) -> str:
        """Why no client can avoid what is violated, as the scenario says; else empty."""
        wanted = None
        if not self.plan.has_own_program:
            wanted = self.scenario.expected_of(self.plan.variant)
        return "" if wanted is None else wanted.limit_of(self.judgement)

    @property
    def exit_code(self) -> int:
        """0 holds, as expected or a known limit, 1 violated or not as expected, 2 unknown."""
        if self.expectation is None:
            return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNKNOWN: 2}[self.verdict]
        return {True: 0, False: 1, None: 2}[self.met]

    @property
    def command(self) -> str:
        """The command that reproduces the run; a Python call where no command can."""
        return self.command_with(self.scenario.source)

    def command_with(self, source: str) -> str:
        """Return the command that reproduces the run, for a scenario of this name or path."""
        variant = self.plan.variant
        if source and not self.plan.has_own_program:
            world = self.trace.header.world
            where = "" if world == "sim" else f" --world {world}"
            what = f"{shlex.quote(source)} --variant {variant}{where}"
            more = [f"--profile {shlex.quote(self.profile.source)}"] if self.profile else []
            more += ["--check-determinism"] if self.is_repeated else []
            command = f"watchkeeper run {what} --seed {self.seed}"
            return " ".join([command, *more, *self.options])
        what = repr(source) if source else f"<the fields of {self.scenario.name!r}>"
        own = ", consumer=..." if self.plan.has_own_program else ""
        took = f", profile={self.profile.source!r}" if self.profile else ""
        twice = ", check_determinism=True" if self.is_repeated else ""
        return f"simulate({what}, seed={self.seed}, variant={variant!r}{own}{took}{twice})"

    def check(self) -> None:
        """Raise AssertionError, with the report, unless the run is as expected.

        A run is as expected if it meets what the scenario expects of this variant or, where
        the scenario says nothing, if every property holds.
        """
        if self.exit_code != 0:
            raise AssertionError(str(self))

    def write(self, place: str | PathLike[str], *, pictures: bool = True) -> Path:
        """Write the files of a run into a folder, and return its first page.

        They are those of `watchkeeper run`: trace, verdict, scenario, figures and pages. Without
        `pictures` the file of the verdict is returned. Raises OSError where it cannot be written.
        """
        from watchkeeper.api.folder import prepare_home
        from watchkeeper.api.run_files import fill

        try:
            ran = fill(prepare_home(Path(place)), self, pictures=pictures)
        except Stop as stop:  # its sentence is for a command line, where it ends a command
            raise OSError(str(stop)) from None
        return Path(next((file for file in ran.files if file.endswith(".html")), ran.files[0]))

    def to_frame(self, what: str = "events") -> Table:
        """Return a table of Arrow: a row for each of the `events`, or of the `properties`.

        `.to_pandas()` makes a frame of pandas; polars and DuckDB take it as it is. Raises
        MissingExtra without pyarrow, which the extra `arrow` installs, and ValueError for
        another word.
        """
        from watchkeeper.api.arrow import events_table, properties_table

        tables = {"events": events_table, "properties": properties_table}
        if what not in tables:
            raise ValueError(f"to_frame({what!r}): expected 'events' or 'properties'")
        return tables[what](self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdict, what happened, and what needs a look."""
        from watchkeeper.api.notebook import result_html

        return result_html(self)

    def __repr__(self) -> str:
        violated = f" {', '.join(self.violated)}" if self.violated else ""
        return (
            f"<Result of {self.scenario.name}, {variants_in_words(self.plan)}, seed {self.seed}: "
            f"{verdict_word(self.verdict, self.known_limit)}{violated}, {len(self.trace)} events>"
        )

    def __str__(self) -> str:
        return plain_report(self)

    def to_json(self, files: list[str] | None = None) -> dict[str, Any]:
        """Return the value that `watchkeeper run --json` prints."""
        wanted = self.expectation
        why = {chain.property: {"why": chain.to_json()} for chain in self.why}
        return {
            "scenario": self.scenario.name,
            "variant": self.plan.variant,
            "consumers": variants_in(self.plan),
            "world": self.trace.header.world,
            "seed": self.seed,
            **({"profile": self.profile.to_json()} if self.profile else {}),
            **({"zookeeper": self.zookeeper} if self.zookeeper else {}),
            "verdict": self.verdict.value,
            "properties": [
                finding.to_json() | why.get(finding.claim.name, {}) for finding in self.findings
            ],
            "signatures": list(signatures_of(self.findings)),
            "expected": wanted.model_dump() if isinstance(wanted, ViolatedModel) else wanted,
            "met": self.met,
            "known_limit": self.known_limit or None,
            "warnings": [asdict(warning) for warning in self.warnings],
            "faults": [_fault(effect) for effect in self.effects],
            "changes": [
                {
                    "at_s": change.at_us / 1e6,
                    "group": change.group,
                    "what": change.what,
                    "time_to_rest_s": _seconds(change.rest_after_us),
                    "trigger_skew_s": _seconds(change.skew_us),
                }
                for change in self.judgement.changes
            ],
            "stats": {
                **self.judgement.stats,
                "events": len(self.trace),
                "operations": self.operations,
                "failed_turns": {
                    node: {"number": number, "last_at_s": at_us / 1e6, "last": why}
                    for node, (number, at_us, why) in self.judgement.failed_turns.items()
                },
            },
            "fingerprint": self.fingerprint,
            "deterministic": True if self.is_repeated else None,
            "command": self.command,
            "files": files or [],
        }


def _fault(effect: FaultEffect) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": effect.action.verb.name,
        "target": effect.target or effect.action.target,
        "at_s": _seconds(effect.at_us),
        "effects": dict(effect.counts),
    }
    if role_of(effect.action.target) is not None:
        told["role"] = effect.action.target
    if effect.missed:
        told["missed"] = effect.missed
    return told


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / 1e6


# --- as text ---------------------------------------------------------------------------


def plain_report(result: Result) -> str:
    """Return the report of a run as plain text."""
    out = StringIO()
    report(result, plain_console(file=out, width=PLAIN_WIDTH, color_system=None))
    return out.getvalue().rstrip()


def report(
    result: Result,
    to: Console,
    files: list[str] | None = None,
    *,
    shows_all: bool = False,
) -> None:
    """Print the report of a run; with `shows_all` every property with its evidence."""
    to.print(_headline(result), soft_wrap=True)
    if result.known_limit:
        to.print(Text(result.known_limit, LIMIT_STYLE), soft_wrap=True)
    happened = synopsis(result.trace)
    if happened:
        to.print(happened, soft_wrap=True)
    to.print()
    _report_findings(result, to, shows_all=shows_all)
    to.print()
    for chain in result.why if shows_all else _first_cause(result):
        _report_chain(chain, to, files or [])
    if result.effects:
        show_table(_fault_table(result.effects), to)
        for message in _emulated(result):
            to.print(Text.assemble(("emulated  ", "dim"), message), soft_wrap=True)
        to.print()
    members = [
        change for change in result.judgement.changes if change.what.endswith(("joined", "left"))
    ]
    if members:
        show_table(_change_table(members), to)
        to.print()
    figures = numbers(message_path(result.trace)) if follows_messages(result.trace) else []
    if figures:
        show_table(_figures_table(figures), to)
        to.print()
    _report_end(result, to)
    if files:
        to.print(Text.assemble(("files     ", "dim"), files[0]), soft_wrap=True)
        for name in files[1:]:
            to.print(f"{' ' * 10}{name}", soft_wrap=True)


def _report_end(result: Result, to: Console) -> None:
    """Print warnings, and what is needed to run it again."""
    for warning in result.warnings:
        to.print(Text.assemble(("warning   ", "yellow"), str(warning)), soft_wrap=True)
    for failing in _failing(result):
        to.print(Text.assemble(("failing   ", "dim"), failing), soft_wrap=True)
    to.print(Text.assemble(("reproduce ", "dim"), result.command), soft_wrap=True)
    if result.profile is not None:
        message = f"{result.profile.source}, digest {result.profile.digest}"
        to.print(Text.assemble(("profile   ", "dim"), message), soft_wrap=True)
    if result.zookeeper:
        to.print(Text.assemble(("zookeeper ", "dim"), result.zookeeper), soft_wrap=True)
    repeated = ", the same in a second run" if result.is_repeated else ""
    message = f"sha256 {result.fingerprint}{repeated}"
    to.print(Text.assemble(("trace     ", "dim"), message), soft_wrap=True)


def _report_findings(result: Result, to: Console, *, shows_all: bool) -> None:
    is_limit = bool(result.known_limit)
    if shows_all:
        show_table(property_table(result.findings, is_limit=is_limit), to)
        if not all(finding.counts for finding in result.findings):
            to.print(Text("in parentheses: shown, but no part of the verdict", "dim"))
        return
    found = folded(result.findings)
    if found.shown:
        show_table(property_table(found.shown, is_limit=is_limit), to)
        to.print()
    rows = (("hold", found.held), ("not exercised", found.unexercised))
    show_table(names_table(rows), to)


def _chains(trace: Trace, findings: tuple[Finding, ...]) -> tuple[Chain, ...]:
    if all(finding.verdict is not Verdict.VIOLATED for finding in findings):
        return ()
    from watchkeeper.reports.why.chain import chains  # only where there is something to explain

    return chains(trace, findings)


def _first_cause(result: Result) -> tuple[Chain, ...]:
    """The chain of the property that was violated first, of those that count if there are any."""
    counting = [chain for chain in result.why if chain.property in result.violated]
    first = min(counting or result.why, key=lambda chain: chain.at_us, default=None)
    return () if first is None else (first,)


def _report_chain(chain: Chain, to: Console, files: list[str]) -> None:
    to.print(Text.assemble(("why       ", "dim"), f"{chain.property}:"), soft_wrap=True)
    for line in chain.lines:
        to.print(f"  {seconds(line.t_us):>10}  {line.text}", soft_wrap=True)
    page = next((name for name in files if name.endswith("spacetime.html")), "")
    if page:
        to.print(Text.assemble(("look at   ", "dim"), f"{page}#seq={chain.seq}"), soft_wrap=True)
    to.print()


def _failing(result: Result) -> list[str]:
    """Return a line for each process whose turns ended in an error that it did not handle."""
    return [
        f"{counted(number, 'turn')} of {node}, the last at {seconds(at_us)}: {why}"
        for node, (number, at_us, why) in sorted(result.judgement.failed_turns.items())
    ]


def _emulated(result: Result) -> list[str]:
    """Return a line for each loss of a host, which a live run can only emulate."""
    return [
        f"the loss of the host of {event.node} at {seconds(event.t_us)}: its process was killed "
        f"and its files were cut back to their last fsync, by {event.detail['bytes']:,} bytes"
        for event in result.trace.of_kind(EventKind.HOST_LOSS_EMULATED)
    ]


def _headline(result: Result) -> Text:
    has_own = result.plan.has_own_program
    who = "a program of your own" if has_own else variants_in_words(result.plan)
    run = f", {who}, {WORLDS[result.trace.header.world]}, seed {result.seed}: "
    verdict = verdict_text(result.verdict, result.known_limit)
    line = Text.assemble((result.scenario.name, "bold"), run, verdict)
    wanted = result.expectation
    if wanted is not None and not result.known_limit:
        message = wanted if isinstance(wanted, str) else f"violated: {', '.join(wanted.violated)}"
        how = {
            True: "as expected",
            False: f"expected {message}",
            None: f"open (expected {message})",
        }
        style = {True: "green", False: "bold red", None: "yellow"}[result.met]
        line.append(f", {how[result.met]}", style)
    if result.trace.header.partial:
        line.append(", interrupted", "yellow")
    return line


def _figures_table(figures: list[tuple[str, str]]) -> PrintedTable:
    """Return the figures about messages."""
    table = plain_table("messages", "seen")
    table.columns[0].no_wrap = True
    for what, figure in figures:
        table.add_row(what, figure)
    return table


def _fault_table(effects: tuple[FaultEffect, ...]) -> PrintedTable:
    table = plain_table("timeline", "at", "effect")
    for effect in effects:
        at = "never" if effect.at_us is None else f"{effect.at_us / 1e6:.3f} s"
        counts = [f"{what} {number}" for what, number in effect.counts.items() if number]
        counted = ", ".join(counts)
        lasts = f" for {duration_text(effect.action.for_us)}" if effect.action.for_us else ""
        style = "" if counted else "yellow"
        seen = counted or (f"none: {effect.missed}" if effect.missed else "none")
        table.add_row(f"{effect.label}{lasts}", at, Text(seen, style))
    return table


def _change_table(members: list[ChangeSeen]) -> PrintedTable:
    table = plain_table("change", "group", "at", "time to rest", "trigger skew")
    table.columns[0].max_width = 60
    if len(members) > MOST_CHANGES:
        table.add_row(f"({len(members) - MOST_CHANGES} earlier ones)", "", "", "", "")
    for member in members[-MOST_CHANGES:]:
        rest = "not reached" if member.rest_after_us is None else duration(member.rest_after_us)
        skew = "-" if member.skew_us is None else duration(member.skew_us)
        table.add_row(member.what, member.group, f"{member.at_us / 1e6:.3f} s", rest, skew)
    return table
