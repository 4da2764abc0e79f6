"""The page of a counterexample: what each step did, and how all stood after it.

Steps run down. On the left stands who claimed and who fetched each partition, in the middle
a lane for each process and one for ZooKeeper, on the right the state after the step that is
chosen. A step is chosen by the address of the page, so that it can be pointed out to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from model.story import Deed, Stand, Story, StoryStep
from model.verdicts import counted
from reports import story_marks
from reports.files import write
from reports.labels import natural
from reports.page import page
from reports.palette import consumer_colours
from reports.story_marks import Stretch, group_of

NAME = "counterexample.html"
NOBODY = "nobody"

_ENCODER = msgspec.json.Encoder(order="deterministic")


def write_story_html(story: Story, folder: Path) -> str:
    """Write the page; the name of the file."""
    steps = counted(len(story.steps), "step")
    if story.circle:
        steps += f", then round a circle of {len(story.circle)}"
    parts = (story.variant, "explored", steps)
    content = page(
        story.scenario,
        " · ".join(filter(None, parts)),
        f"{story.violates} is violated",
        lines=[
            f"{story.violates} is violated",
            story.proof,
            f"Found by a search of every interleaving; its bound: {_words(story.bound)}.",
        ],
        banner="",
        styles=("story.css",),
        scripts=("story-draw.js", "story.js"),
        data=story_data(story),
    )
    return write(folder / NAME, content)


def story_data(story: Story) -> dict[str, Any]:
    """A story as the page's script reads it; nodes and columns by their numbers."""
    colours = consumer_colours(story_marks.consumers(story))
    number = {name: at for at, name in enumerate(story.nodes)}
    lanes = story_marks.concerned(story)
    fetched, claimed = story_marks.fetched(story), story_marks.claimed(story)
    columns = _columns(fetched, claimed)
    place = {(group, at): column for column, (group, at, _) in enumerate(columns)}
    return {
        "violates": story.violates,
        "proof": story.proof,
        "nodes": [[name, colours.get(name, "")] for name in story.nodes],
        "lanes": [number[name] for name in lanes],
        "columns": [
            [group, at, [number[node] for node in nodes]] for group, at, nodes in columns
        ],
        "fetched": [
            [column, number[one.node], *_span(one), one.said, track]
            for (group, at), column in place.items()
            for one, track in _bars(fetched, group, at)
        ],
        "claimed": [
            [column, number.get(one.node, -1), *_span(one)]
            for one in claimed
            for column in _columns_of(one, columns)
        ],
        "shared": [[place[one.node, one.what], *_span(one)] for one in story_marks.shared(story)],
        "notes": [
            [number[one.node], one.what, *_span(one), one.said]
            for one in story_marks.notes(story)
            if one.node in lanes
        ],
        "steps": _steps(story),
        "first": _stands(story.first, number),
        "violation": len(story.steps),
        "circle": [story.circle[0].number, story.circle[-1].number] if story.circle else None,
    }


def _words(bound: str) -> str:
    return bound.replace("_", " ")


def _span(one: Stretch) -> list[int | None]:
    return [one.begins, one.ends]


def _bars(fetched: Iterable[Stretch], group: str, at: str) -> Iterable[tuple[Stretch, int]]:
    """The bars of a column, each with its track."""
    mine = [one for one in fetched if (group_of(one.node), one.what) == (group, at)]
    return zip(mine, story_marks.tracks(mine), strict=True)


# --- a column for each partition -------------------------------------------------------

Column = tuple[str, str, list[str]]
"""Group, partition, and who fetches it at any time."""


def _columns(fetched: Iterable[Stretch], claimed: Iterable[Stretch]) -> list[Column]:
    """The partitions of each group that somebody fetches or claims."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in fetched:
        found.setdefault((group_of(one.node), one.what), set()).add(one.node)
    for one in claimed:
        if one.node != NOBODY:
            found.setdefault((group_of(one.node), one.what), set())
    for one in claimed:
        if not any(at == one.what for _, at in found):
            found["", one.what] = set()
    ordered = sorted(found, key=lambda key: (natural(key[0]), natural(key[1])))
    return [(group, at, sorted(found[group, at], key=natural)) for group, at in ordered]


def _columns_of(claim: Stretch, columns: list[Column]) -> list[int]:
    """Where a claim is drawn; one that is nobody's stands for every group."""
    return [
        number
        for number, (group, at, _) in enumerate(columns)
        if at == claim.what and (claim.node == NOBODY or group == group_of(claim.node))
    ]


# --- steps -----------------------------------------------------------------------------


def _steps(story: Story) -> list[dict[str, Any]]:
    number = {name: at for at, name in enumerate(story.nodes)}
    found, stands, owners = [], story.first, story.first_owners
    for step in story.whole:
        changes = story_marks.changes(stands, owners, step)
        found.append({**_step(step, number), "changes": changes})
        stands, owners = step.stands, step.owners
    return found


def _step(step: StoryStep, number: dict[str, int]) -> dict[str, Any]:
    deed = step.deed
    return {
        "node": number[deed.node],
        "does": deed.does,
        "fault": deed.fault,
        "operation": deed.operation,
        "answer": short_answer(deed.operation, deed.answer) if _is_answered(deed) else "",
        "failed": _failed(deed.answer),
        "full": _json(deed.answer),
        "reads": [
            [operation, short_answer(operation, answer), _failed(answer), _json(answer)]
            for operation, answer in deed.reads
        ],
        "stands": _stands(step.stands, number),
        "owners": step.owners,
        "impossible": list(step.impossible),
    }


def _stands(stands: Mapping[str, Stand], number: Mapping[str, int]) -> dict[str, Any]:
    return {
        str(number[node]): [
            stand.phase,
            stand.session,
            stand.waits_for,
            list(stand.notes),
            list(stand.fetching),
        ]
        for node, stand in stands.items()
    }


def _is_answered(deed: Deed) -> bool:
    return deed.answer is not None or (bool(deed.operation) and deed.does == "is answered")


def _failed(answer: Any) -> bool:
    return isinstance(answer, dict) and "error" in answer


def _json(answer: Any) -> str:
    return "" if answer is None else _ENCODER.encode(answer).decode()


def short_answer(operation: str, answer: Any) -> str:
    """An answer in a few words."""
    word, _, path = operation.partition(" ")
    if answer is None:
        return "there is none" if word == "exists" else "done"
    if answer == path or (word == "multi" and isinstance(answer, list)):
        return "done"
    if isinstance(answer, dict):
        if "error" in answer:
            return str(answer["error"])
        if "data" in answer:
            said = "there is one" if word == "exists" else str(answer["data"])
            return f"{said}, mine" if answer.get("mine") else said
    if isinstance(answer, list):
        return "[" + ", ".join(short_answer("", one) for one in answer) + "]"
    return str(answer)
