"""What a search found, as text: the table of properties, then the story of a counterexample."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from explore.search import Progress
from model.story import Stand, Story, StoryStep
from model.verdicts import Verdict, counted
from watchkeeper.exploring import Explored, bound_in_words
from watchkeeper.printing import STYLES, property_table, show_table

LONGEST_CELL = 60
ENDED = "the search ended with the first violation; --all goes on"


def report(explored: Explored, to: Console, files: list[str]) -> None:
    """Print what was found."""
    verdict = explored.verdict
    to.print(
        Text.assemble(
            f"{explored.plan.name}, {explored.plan.variant}, every interleaving: ",
            (verdict.value, STYLES[verdict]),
            " within its bound" if verdict is Verdict.HOLDS else "",
        ),
        soft_wrap=True,
    )
    shown = [one for one in explored.findings if one.verdict is not Verdict.UNKNOWN]
    if shown and explored.story is not None:
        show_table(property_table(tuple(shown)), to)
        if len(shown) < len(explored.findings):
            to.print(Text(f"the others are unknown: {ENDED}", "dim"), soft_wrap=True)
    else:
        show_table(property_table(explored.findings), to)
    to.print()
    if explored.story is not None:
        tell_story(explored.story, to)
        to.print()
    _line(to, "bound   ", bound_in_words(explored))
    _line(to, "search  ", searched_in_words(explored))
    _line(to, "took    ", took_in_words(explored))
    for remark in explored.remarks:
        _line(to, "note    ", remark)
    _line(to, "again   ", explored.command)
    for at, name in enumerate(files):
        _line(to, "        " if at else "files   ", name)


def _line(to: Console, head: str, said: str) -> None:
    to.print(Text.assemble((head, "dim"), said), soft_wrap=True)


def searched_in_words(explored: Explored) -> str:
    """How large the search was."""
    progress = explored.searched.progress
    end = "all of them" if explored.searched.is_complete else explored.searched.stopped
    return (
        f"{progress.states:,} states and {progress.transitions:,} transitions in "
        f"{progress.depth} levels, {end}"
    )


def took_in_words(explored: Explored) -> str:
    """How fast it was."""
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


# --- the story -------------------------------------------------------------------------


def tell_story(story: Story, to: Console) -> None:
    """Print a counterexample: a line a step, what was done, and what changed by it."""
    steps = counted(len(story.steps), "step")
    to.print(Text(f"the shortest way to violate {story.violates}, {steps}:"), soft_wrap=True)
    heads = {one[0].number: head for one, head in _heads(story) if one}
    stands, owners = story.first, story.first_owners
    for step in story.whole:
        if step.number in heads:
            to.print(Text(heads[step.number]), soft_wrap=True)
        line = _step_line(story, step)
        for changed in _changes(stands, owners, step):
            line.append(f"  · {changed}", "cyan")
        to.print(line, soft_wrap=True)
        stands, owners = step.stands, step.owners
    if story.circle:
        before, after = story.circle[0].number - 1, story.circle[-1].number
        to.print(Text(f"after step {after} all is as it was after step {before}"), soft_wrap=True)
    to.print(Text(story.proof, "bold"), soft_wrap=True)


def _heads(story: Story) -> Iterator[tuple[tuple[StoryStep, ...], str]]:
    """What stands above the steps that follow on the violation."""
    yield story.way_in, "and then, to where it goes round:"
    yield story.circle, "and this for ever:"


def _step_line(story: Story, step: StoryStep) -> Text:
    width = max(len(node) for node in story.nodes)
    deed = step.deed
    does = Text(f"{deed.does}", "bold red" if deed.fault else "")
    head = (f"{step.number:4}  ", "dim")
    return Text.assemble(head, f"{deed.node:{width}}  ", does, _said(step))


def _said(step: StoryStep) -> str:
    deed = step.deed
    said = f" {deed.operation}" if deed.operation else ""
    if deed.answer is not None:
        said += f" -> {_cut(_answer(deed.answer))}"
    if deed.reads:
        said += f", and to {len(deed.reads)} reads more"
    return said


def _answer(answer: object) -> str:
    if isinstance(answer, dict):
        if "error" in answer:
            return str(answer["error"])
        if "data" in answer:
            mine = ", mine" if answer["mine"] else ""
            return f"{answer['data']!r} version {answer['version']}{mine}"
    if isinstance(answer, list):
        return "[" + ", ".join(_answer(one) for one in answer) + "]"
    return str(answer)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}..."


def _changes(stands: dict[str, Stand], owned: dict[str, str], after: StoryStep) -> list[str]:
    """What a step has changed of who fetches, who owns, and whose session is alive."""
    changes = []
    for node, now in after.stands.items():
        changes += _of_one(node, stands.get(node), now)
    for partition in {**owned, **after.owners}:
        if owned.get(partition) != after.owners.get(partition):
            changes.append(f"{partition}: {after.owners.get(partition, 'nobody')} claims")
    return changes


def _of_one(node: str, was: Stand | None, now: Stand) -> list[str]:
    changes = []
    fetched = was.fetching if was is not None else ()
    begun = [one for one in now.fetching if one not in fetched]
    ended = [one for one in fetched if one not in now.fetching]
    if begun:
        changes.append(f"{node} fetches {', '.join(begun)}")
    if ended:
        changes.append(f"{node} stops {', '.join(ended)}")
    if was is not None and was.session != now.session:
        changes.append(f"{node}'s session: {now.session}")
    return changes
