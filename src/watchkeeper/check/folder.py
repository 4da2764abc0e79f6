"""The folder of a search: its result, and its counterexample as scenario, test and page."""

from __future__ import annotations

import copy
import shlex
from pathlib import Path
from typing import Any

import yaml

from watchkeeper.api import folder
from watchkeeper.api.index import say_in_search
from watchkeeper.check import check
from watchkeeper.check.battery import Battery, to_json
from watchkeeper.check.browse import Browser
from watchkeeper.check.check import Explored
from watchkeeper.model.counterexample.counterexample import Counterexample, ScheduledStep
from watchkeeper.model.plan.plan import Plan

SCHEDULE = "counterexample.yaml"
TEST = "test_counterexample.py"
PAGE = "counterexample.html"
STATES = ("explore.html", "states.png")
OF_COUNTEREXAMPLE = (SCHEDULE, TEST, PAGE)
FILES = (*OF_COUNTEREXAMPLE, *STATES)
ABOUT = {
    PAGE: "the counterexample",
    "explore.html": "all states",
    SCHEDULE: "as a scenario",
    TEST: "as a test",
    folder.VERDICT: "the verdict as JSON",
}
"""File of a search -> how its pages call it."""

TEST_TEXT = '''"""{proof}

It fails as long as {violates} is violated in {scenario} by {variant}, which takes {steps} steps:
delete it, or turn it round, when that is mended.
"""

from pathlib import Path

from watchkeeper import replay


def test_{name}() -> None:
    replayed = replay(Path(__file__).with_name("{schedule}"))

    assert not replayed.reached, replayed.text
'''


def write(browser: Browser, out: Path) -> list[str]:
    """Fill the folder of a search, and return the paths of its files."""
    explored = browser.explored
    home = _home_of(explored.plan, out)
    files = _files(home, browser, f"{explored.command} --serve")
    files += [str(home / name) for name in browser.write_pages(home)]
    folder.write_verdict(home, check.to_json(explored, files))
    say_in_search(home, ABOUT, word=explored.verdict.value, command=explored.command)
    return files


def write_battery(battery: Battery, out: Path) -> list[str]:
    """Fill the folder of a battery, with its first counterexample; return the paths."""
    home = _home_of(battery.plan, out)
    # The bounds of one search of the battery stand in the scenario of its counterexample alone.
    serving = shlex.join(["watchkeeper", "explore", str(home / SCHEDULE), "--serve"])
    browser = None if battery.violated is None else Browser(battery.violated)
    files = _files(home, browser, serving)
    folder.write_verdict(home, to_json(battery, files))
    say_in_search(home, ABOUT, word=battery.verdict.value, command=battery.command)
    return files


def _home_of(plan: Plan, out: Path) -> Path:
    home = folder.prepare(out, f"{plan.name}-{plan.variant}-explore")
    folder.clear(home, FILES)
    return home


def _files(home: Path, browser: Browser | None, serving: str) -> list[str]:
    names = [folder.VERDICT]
    if browser is not None and browser.explored.counterexample is not None:
        names += _write_counterexample(browser, browser.explored.counterexample, home, serving)
    return [str(home / name) for name in names]


def _write_counterexample(
    browser: Browser, counterexample: Counterexample, home: Path, serving: str
) -> list[str]:
    scenario = scenario_of(browser.explored, counterexample)
    text = yaml.safe_dump(scenario, sort_keys=False, allow_unicode=True, width=100)
    folder.write_text(home / SCHEDULE, text)
    folder.write_text(home / TEST, _test_of(counterexample))
    browser.write_counterexample(counterexample, home, serving)
    return list(OF_COUNTEREXAMPLE)


def scenario_of(explored: Explored, counterexample: Counterexample) -> dict[str, Any]:
    """Return the scenario with the bounds of the search and the steps of the counterexample."""
    given: dict[str, Any] = copy.deepcopy(explored.scenario.document.data)
    bounds = explored.bounds
    given["variant"] = explored.plan.variant
    expected = given.pop("expect", {})
    if explored.limit_of(counterexample.violates):
        given["expect"] = {explored.plan.variant: expected[explored.plan.variant]}
    given["bounds"] = {
        **bounds.faults,
        **{
            word: value
            for word in ("together", "messages", "begin", "consumers", "partitions", "brokers")
            if (value := getattr(bounds, word)) is not None
        },
    }
    schedule = counterexample.schedule
    given["schedule"] = {
        "violates": schedule.violates,
        "steps": [_step(step) for step in schedule.steps],
    }
    if schedule.cycle:
        given["schedule"]["cycle"] = [_step(step) for step in schedule.cycle]
    return given


def _step(scheduled: ScheduledStep) -> dict[str, Any]:
    """Return a step without its empty fields."""
    step: dict[str, Any] = {"node": scheduled.node, "does": scheduled.does.value}
    for word in ("then", "fault", "operation"):
        if getattr(scheduled, word):
            step[word] = str(getattr(scheduled, word))
    if scheduled.answer is not None:
        step["answer"] = _plain(scheduled.answer)
    if scheduled.reads:
        step["reads"] = [
            {"operation": operation, "answer": _plain(answer)}
            for operation, answer in scheduled.reads
        ]
    return step


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {word: _plain(value) for word, value in answer.items()}
    return [_plain(item) for item in answer] if isinstance(answer, list | tuple) else answer


def _test_of(counterexample: Counterexample) -> str:
    return TEST_TEXT.format(
        proof=counterexample.proof[0].upper() + counterexample.proof[1:] + ".",
        variant=counterexample.variant,
        violates=counterexample.violates,
        scenario=counterexample.scenario,
        steps=len(counterexample.steps),
        name=counterexample.violates.replace(" ", "_"),
        schedule=SCHEDULE,
    )
