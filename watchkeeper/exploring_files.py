"""The folder of a search: what it found, and its counterexample in forms to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from model.story import Deed, Story
from watchkeeper import exploring, folder
from watchkeeper.endings import USAGE, Stop
from watchkeeper.exploring import Explored

SCHEDULE = "counterexample.yaml"
TEST = "test_counterexample.py"
PAGE = "counterexample.html"
FILES = (SCHEDULE, TEST, PAGE)

TEST_TEXT = '''"""{proof}

It fails as long as {variant} violates {violates} in {scenario}, which it does in {steps} steps:
delete it, or turn it round, when that is mended.
"""

from pathlib import Path

from watchkeeper import replay


def test_{name}() -> None:
    replayed = replay(Path(__file__).with_name("{schedule}"))

    assert not replayed.reached, replayed.said
'''


def write(explored: Explored, out: Path) -> list[str]:
    """Fill the folder of a search; the paths of its files."""
    name = f"{explored.plan.name}-{explored.plan.variant}-explore"
    try:
        home = folder.prepare(out, name)
        folder.clear(home, FILES)
        names = [folder.VERDICT]
        if explored.story is not None:
            names += _write_story(explored, explored.story, home)
        files = [str(home / one) for one in names]
        folder.write_verdict(home, exploring.to_json(explored, files))
        return files
    except folder.CannotWrite as error:
        raise Stop(USAGE, str(error)) from None


def _write_story(explored: Explored, story: Story, home: Path) -> list[str]:
    from reports.story_html import write_story_html

    text = yaml.safe_dump(
        scenario_of(explored, story), sort_keys=False, allow_unicode=True, width=100
    )
    folder.write_text(home / SCHEDULE, text)
    folder.write_text(home / TEST, _test_of(story))
    write_story_html(story, home)
    return list(FILES)


def scenario_of(explored: Explored, story: Story) -> dict[str, Any]:
    """The scenario again, with the bounds it was searched in and the steps that were found."""
    given: dict[str, Any] = yaml.safe_load(explored.scenario.text)
    bounds = explored.bounds
    given["variant"] = story.variant
    given.pop("expect", None)
    given["bounds"] = {
        **bounds.faults,
        **{
            word: value
            for word in ("together", "messages", "begin", "consumers", "partitions")
            if (value := getattr(bounds, word)) is not None
        },
    }
    schedule = story.schedule
    given["schedule"] = {
        "violates": schedule.violates,
        "steps": [_step(one) for one in schedule.deeds],
    }
    if schedule.circle:
        given["schedule"]["circle"] = [_step(one) for one in schedule.circle]
    return given


def _step(deed: Deed) -> dict[str, Any]:
    """A step without what is empty."""
    step: dict[str, Any] = {"node": deed.node, "does": deed.does}
    for word in ("fault", "operation"):
        if getattr(deed, word):
            step[word] = getattr(deed, word)
    if deed.answer is not None:
        step["answer"] = _plain(deed.answer)
    if deed.reads:
        step["reads"] = [
            {"operation": operation, "answer": _plain(answer)} for operation, answer in deed.reads
        ]
    return step


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {word: _plain(value) for word, value in answer.items()}
    return [_plain(one) for one in answer] if isinstance(answer, list | tuple) else answer


def _test_of(story: Story) -> str:
    return TEST_TEXT.format(
        proof=story.proof[0].upper() + story.proof[1:] + ".",
        variant=story.variant,
        violates=story.violates,
        scenario=story.scenario,
        steps=len(story.steps),
        name=story.violates.replace(" ", "_"),
        schedule=SCHEDULE,
    )
