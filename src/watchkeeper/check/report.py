"""The result of a search as text: the table of properties, then the steps of a counterexample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from watchkeeper.api.tables import LIMIT_STYLE, property_table, show_table, verdict_text
from watchkeeper.check.check import Explored, bound_in_words
from watchkeeper.checker.search.search import Progress
from watchkeeper.model.counterexample.counterexample import (
    Counterexample,
    CounterexampleStep,
    ProcessSnapshot,
)
from watchkeeper.model.plan.bounds import variants_in_words
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, Finding, Verdict, counted

LONGEST_CELL = 60
ENDED = "the search ended with the first violation; --all goes on"


def report(explored: Explored, to: Console, files: list[str]) -> None:
    """Print the result of a search."""
    to.print(_headline(explored), soft_wrap=True)
    if explored.known_limit:
        to.print(Text(explored.known_limit, LIMIT_STYLE), soft_wrap=True)
    print_properties(
        explored.findings,
        to,
        has_counterexample=explored.counterexample is not None,
        is_limit=bool(explored.known_limit),
    )
    to.print()
    if explored.counterexample is not None:
        print_counterexample(explored.counterexample, to)
        to.print()
    labelled_line(to, "bound", bound_in_words(explored))
    labelled_line(to, "search", searched_in_words(explored))
    labelled_line(to, "took", took_in_words(explored))
    for remark in explored.remarks:
        labelled_line(to, "note", remark)
    print_files(to, explored.command, files)


def print_properties(
    findings: Sequence[Finding],
    to: Console,
    *,
    has_counterexample: bool,
    is_limit: bool = False,
) -> None:
    """Print the table of properties; with a counterexample, only those that the search judged."""
    known = tuple(
        finding
        for finding in findings
        if finding.verdict is not Verdict.UNKNOWN or finding.exercised == 0
    )
    if not (known and has_counterexample):
        show_table(property_table(tuple(findings)), to)
        return
    show_table(property_table(known, is_limit=is_limit), to)
    if len(known) < len(findings):
        to.print(Text(f"the others are unknown: {ENDED}", "dim"), soft_wrap=True)


def print_files(to: Console, command: str, files: Sequence[str]) -> None:
    """Print the command that repeats a search, and what the search has written."""
    labelled_line(to, "reproduce", command)
    for at, name in enumerate(files):
        labelled_line(to, "" if at else "files", name)


def labelled_line(to: Console, label: str, message: str) -> None:
    """Print a line that begins with what it is about."""
    to.print(Text.assemble((f"{label:10}", "dim"), message), soft_wrap=True)


def _headline(explored: Explored) -> Text:
    verdict = explored.verdict
    said = verdict_text(verdict, explored.known_limit)
    more = " within its bound" if verdict is Verdict.HOLDS else ""
    if verdict is Verdict.VIOLATED and explored.is_allowed and not explored.known_limit:
        said = verdict_text(Verdict.UNKNOWN)
        more = f", with a {KNOWN_LIMIT} so far"
    name = f"{explored.plan.name}, {variants_in_words(explored.plan)}"
    return Text.assemble(f"{name}, every interleaving: ", said, more)


def searched_in_words(explored: Explored) -> str:
    """Return the size of the search."""
    progress = explored.searched.progress
    end = "all of them" if explored.searched.is_complete else explored.searched.stopped
    return (
        f"{progress.states:,} states and {progress.transitions:,} transitions in "
        f"{progress.depth} levels, {end}"
    )


def took_in_words(explored: Explored) -> str:
    """Return the speed of the search."""
    progress = explored.searched.progress
    return (
        f"{progress.seconds:.1f} s, {progress.states / max(progress.seconds, 1e-9):,.0f} "
        f"states/s, {progress.nbytes // max(progress.states, 1)} bytes a state"
    )


def progress_line(progress: Progress) -> str:
    """One line while it goes on."""
    rate = progress.states / max(progress.seconds, 1e-9)
    return (
        f"depth {progress.depth}  {progress.states:,} states  frontier {progress.frontier:,}  "
        f"{rate:,.0f} states/s"
    )


# --- the counterexample ---------------------------------------------------------------


def print_counterexample(counterexample: Counterexample, to: Console) -> None:
    """Print a counterexample: a line for each step, with its action and its changes."""
    steps = counted(len(counterexample.steps), "step")
    to.print(
        Text(f"the shortest way to violate {counterexample.violates}, {steps}:"), soft_wrap=True
    )
    heads = {steps[0].number: head for steps, head in _heads(counterexample) if steps}
    stands, owners = counterexample.first, counterexample.first_owners
    registry = counterexample.first_registry
    for step in counterexample.all_steps:
        if step.number in heads:
            to.print(Text(heads[step.number]), soft_wrap=True)
        line = _step_line(counterexample, step)
        for changed in _changes(stands, owners, step) + _said_now(registry, step.registry):
            line.append(f"  · {changed}", "cyan")
        to.print(line, soft_wrap=True)
        stands, owners, registry = step.snapshots, step.owners, step.registry
    if counterexample.cycle:
        before, after = counterexample.cycle[0].number - 1, counterexample.cycle[-1].number
        to.print(Text(f"after step {after} all is as it was after step {before}"), soft_wrap=True)
    to.print(Text(counterexample.proof, "bold"), soft_wrap=True)


def _heads(
    counterexample: Counterexample,
) -> Iterator[tuple[tuple[CounterexampleStep, ...], str]]:
    """Yield the heading above each part of the steps."""
    yield counterexample.stem, "and then, to where it goes round:"
    yield counterexample.cycle, "and this for ever:"


def _step_line(counterexample: Counterexample, step: CounterexampleStep) -> Text:
    width = max(len(node) for node in counterexample.nodes)
    scheduled = step.scheduled
    does = Text(scheduled.text, "bold red" if scheduled.fault else "")
    head = (f"{step.number:4}  ", "dim")
    return Text.assemble(head, f"{scheduled.node:{width}}  ", does, _text(step))


def _text(step: CounterexampleStep) -> str:
    scheduled = step.scheduled
    message = f" {scheduled.operation}" if scheduled.operation else ""
    if scheduled.answer is not None:
        message += f" -> {_cut(_answer(scheduled.answer))}"
    if scheduled.reads:
        message += f", and {counted(len(scheduled.reads), 'more read')}"
    return message


def _answer(answer: object) -> str:
    if isinstance(answer, dict):
        if "error" in answer:
            return str(answer["error"])
        if "data" in answer:
            mine = ", mine" if answer["mine"] else ""
            return f"{answer['data']!r} version {answer['version']}{mine}"
    if isinstance(answer, list):
        return "[" + ", ".join(_answer(item) for item in answer) + "]"
    return str(answer)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}..."


def _changes(
    stands: dict[str, ProcessSnapshot], owned: dict[str, str], after: CounterexampleStep
) -> list[str]:
    """Return the changes of a step: fetchers, owners and live sessions."""
    changes = []
    for node, now in after.snapshots.items():
        changes += _of_one(node, stands.get(node), now)
    for partition in {**owned, **after.owners}:
        if owned.get(partition) != after.owners.get(partition):
            changes.append(f"{partition}: {after.owners.get(partition, 'no member')} claims")
    return changes


def _said_now(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what the registry says otherwise than before, of controllers and leaders."""
    names = {**before, **after}
    return [
        f"{name}: {after.get(name, 'none')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _of_one(node: str, was: ProcessSnapshot | None, now: ProcessSnapshot) -> list[str]:
    changes = []
    fetched = was.fetching if was is not None else ()
    begun = [partition for partition in now.fetching if partition not in fetched]
    ended = [partition for partition in fetched if partition not in now.fetching]
    if begun:
        changes.append(f"{node} fetches {', '.join(begun)}")
    if ended:
        changes.append(f"{node} stops {', '.join(ended)}")
    if was is not None and was.session != now.session:
        changes.append(f"{node}'s session: {now.session}")
    return changes
