"""The page of a counterexample: the explorer opened at the end of a path, and its picture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.support.devtools import Tab, address_of, browser

from tests.support.browser import needs_browser, rendered
from tests.support.checker.clusters import searched, small
from watchkeeper.api.index import link, say_in_page
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.disabled import disabled_actors
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.counterexample.path import path_to
from watchkeeper.model.counterexample.counterexample import (
    UNKNOWN_OWNER,
    Counterexample,
    CounterexampleStep,
    ProcessSnapshot,
    ScheduledStep,
)
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import Bounds, FaultKind
from watchkeeper.model.properties.ownership import SINGLE, STRICT
from watchkeeper.reports.explorer.html import write_counterexample_html
from watchkeeper.reports.explorer.step_data import short_answer

IDS = "/consumers/g/ids"
EVENT = f"{IDS} children changed"


def snapshot(
    *fetching: str,
    phase: str = "running",
    session: str = "alive",
    notifications: tuple[str, ...] = (),
) -> ProcessSnapshot:
    """The snapshot of a process that waits for a notification."""
    return ProcessSnapshot(phase, "a notification", session, fetching, notifications)


def step(
    number: int,
    scheduled: ScheduledStep,
    first: ProcessSnapshot,
    second: ProcessSnapshot,
    owners: dict[str, str] | None = None,
) -> CounterexampleStep:
    """A step of a counterexample with two members and a broker."""
    snapshots = {"g/0": first, "g/1": second, "broker/0": snapshot()}
    return CounterexampleStep(
        number, scheduled, snapshots, owners or {}, (f"broker/0 cannot do {number}",)
    )


def made_of(*steps: CounterexampleStep, violates: str = SINGLE.name) -> Counterexample:
    """A counterexample of these steps."""
    nodes = ("g/0", "g/1", "broker/0")
    proof = "g/0 has fetched c/0 since step 1; two owners"
    first = {node: snapshot() for node in nodes}
    return Counterexample(
        "made up", "documented", violates, proof, "1 crash", nodes, steps, first, {}
    )


ANSWERED = ScheduledStep("g/1", StepKind.REPLY, operation="children /x", answer=["a"])
GONE = snapshot(phase="gone", session="none")


@pytest.fixture(scope="module")
def two_owners() -> Counterexample:
    """The path to two owners in the protocol exactly as the Kafka pages describe it."""
    system, search, found = searched(small("documented"))
    [both] = [violation for violation in found.violations if violation.what == SINGLE.name]
    return counterexample_of(system, search, both)


# --- what is fetched and claimed -----------------------------------------------------------

Mark = dict[str, Any]
MARKS = """
show(given.choices).then(() => JSON.stringify({
  ...marks,
  fetched: marks.columns.flatMap((column) => column.bars),
  changes: steps.map((_, at) => changesOf(states[at], states[at + 1])),
  setUp: setUpOf(states, steps),
}))
"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """A page in a browser."""
    with browser() as opened:
        yield opened


def marks_of(tab: Tab, counterexample: Counterexample, folder: Path) -> dict[str, Any]:
    """The marks that the page of a counterexample draws."""
    page = folder / write_counterexample_html(counterexample, folder)
    tab.open(address_of(page))
    found: dict[str, Any] = json.loads(tab.run(MARKS))
    return found


def lasts(mark: Mark, number: int) -> bool:
    """Whether an interval includes the state after a step."""
    return mark["begins"] <= number and (mark["ends"] is None or number < mark["ends"])


@needs_browser
def test_two_owners_are_two_bars_from_the_last_step_on(
    two_owners: Counterexample, tab: Tab, tmp_path: Path
) -> None:
    found = marks_of(tab, two_owners, tmp_path)
    last = len(two_owners.steps)

    [both] = found["shared"]

    assert (both["node"], both["begins"], both["ends"]) == ("billing", last, None)
    [column] = [one for one in found["columns"] if one["what"] == both["what"]]
    bars = [bar for bar in column["bars"] if bar["ends"] is None]
    assert len({bar["node"] for bar in bars}) == len({bar["track"] for bar in bars}) == 2
    assert len(column["nodes"]) == 2


@needs_browser
def test_bars_agree_with_the_snapshots(
    two_owners: Counterexample, tab: Tab, tmp_path: Path
) -> None:
    """After each step, exactly the processes with a bar fetch or claim."""
    found = marks_of(tab, two_owners, tmp_path)

    for step in two_owners.steps:
        now = [
            {(bar["node"], bar["what"]) for bar in found[bars] if lasts(bar, step.number)}
            for bars in ("fetched", "claimed")
        ]
        fetching = {(node, at) for node, state in step.snapshots.items() for at in state.fetching}
        assert now == [fetching, {(owner, at) for at, owner in step.owners.items()}]


@needs_browser
@pytest.mark.parametrize(("violates", "shared"), [(SINGLE.name, []), (STRICT.name, [("g", 1)])])
def test_a_zombie_owner_counts_only_for_the_strict_property(
    violates: str, shared: list[tuple[str, int]], tab: Tab, tmp_path: Path
) -> None:
    """A member with a dead session is a second owner only for the strict property."""
    zombie = snapshot("c/0", session="dead, and it does not know")
    counterexample = made_of(step(1, ANSWERED, zombie, snapshot("c/0")), violates=violates)

    found = marks_of(tab, counterexample, tmp_path)

    assert [(mark["node"], mark["begins"]) for mark in found["shared"]] == shared
    assert {(mark["node"], mark["state"]) for mark in found["fetched"]} == {
        ("g/0", "dead"),
        ("g/1", "alive"),
    }


@needs_browser
def test_two_groups_may_fetch_one_partition(tab: Tab, tmp_path: Path) -> None:
    """Each group has a column, and a claim is drawn in the column of its owner's group."""
    snapshots = {"g/0": snapshot("c/0"), "h/0": snapshot("c/0")}
    step = CounterexampleStep(1, ScheduledStep("g/0", StepKind.START), snapshots, {"c/0": "h/0"})
    first = dict.fromkeys(snapshots, snapshot())
    counterexample = replace(made_of(step), nodes=("g/0", "h/0"), first=first)

    found = marks_of(tab, counterexample, tmp_path)

    columns = [(column["group"], column["what"]) for column in found["columns"]]
    assert columns == [("g", "c/0"), ("h", "c/0")]
    assert tab.run("columnsOfClaim(marks.claimed[0], marks.columns)") == [1]
    assert found["shared"] == []


@needs_browser
def test_a_claim_of_an_unknown_owner_is_drawn(tab: Tab, tmp_path: Path) -> None:
    """In every group that has its partition; else in a column of its own."""
    owners = {"c/0": UNKNOWN_OWNER, "c/1": UNKNOWN_OWNER}
    counterexample = made_of(step(1, ANSWERED, snapshot("c/0"), snapshot(), owners))

    found = marks_of(tab, counterexample, tmp_path)

    columns = [(column["group"], column["what"]) for column in found["columns"]]
    assert columns == [("", "c/1"), ("g", "c/0")]
    assert tab.run("marks.claimed.map((one) => columnsOfClaim(one, marks.columns))") == [[1], [0]]


@needs_browser
def test_intervals_of_the_first_state_begin_at_zero(tab: Tab, tmp_path: Path) -> None:
    """They come from the first state, not from what the first step changes."""
    counterexample = made_of(step(1, ANSWERED, snapshot("c/0"), snapshot("c/1"), {"c/0": "g/0"}))
    first = {**counterexample.first, "g/0": snapshot("c/0", notifications=(EVENT,))}
    counterexample = replace(counterexample, first=first, first_owners={"c/0": "g/0"})

    found = marks_of(tab, counterexample, tmp_path)

    begun = {(mark["node"], mark["begins"]) for mark in found["fetched"]}
    [event] = found["notifications"]
    assert begun == {("g/0", 0), ("g/1", 1)}
    assert [(mark["what"], mark["begins"]) for mark in found["claimed"]] == [("c/0", 0)]
    assert (event["begins"], event["ends"], event["state"]) == (0, 1, "received")
    assert found["changes"] == [["g/1 fetches c/1"]]


@needs_browser
def test_set_up_ends_with_what_the_path_is_about(tab: Tab, tmp_path: Path) -> None:
    """A claim, a fetch, a fault or a violation; before it there is nothing to see."""
    idle = [step(number, ANSWERED, snapshot(), snapshot()) for number in range(1, 6)]
    crash = ScheduledStep("g/1", StepKind.CRASH, FaultKind.CRASH)
    endings = [
        step(6, ANSWERED, snapshot(), snapshot(), {"c/0": "g/0"}),
        step(6, ANSWERED, snapshot("c/0"), snapshot()),
        step(6, crash, snapshot(), GONE),
    ]
    after = step(7, ANSWERED, snapshot(), snapshot())

    found = [marks_of(tab, made_of(*idle, end, after), tmp_path)["setUp"] for end in endings]

    assert found == [5, 5, 5]
    assert marks_of(tab, made_of(*idle), tmp_path)["setUp"] == 4
    assert tab.run("rows.length === 6 && rows.slice(1, 5).every((row) => !row)")


# --- events --------------------------------------------------------------------------------


@needs_browser
@pytest.mark.parametrize(
    ("scheduled", "after", "end"),
    [
        (
            ScheduledStep("g/0", StepKind.NOTIFICATION, operation=EVENT),
            snapshot(),
            (3, "received"),
        ),
        (
            ScheduledStep("g/0", StepKind.DISCONNECT, FaultKind.DISCONNECT),
            snapshot(),
            (3, "lost"),
        ),
        (
            ScheduledStep(
                "g/0", StepKind.REPLY, FaultKind.LATE_REQUEST, then=StepKind.LOST_REPLY
            ),
            snapshot(),
            (3, "lost"),
        ),
        (ScheduledStep("g/0", StepKind.CRASH, FaultKind.CRASH), GONE, (3, "lost")),
        (ANSWERED, snapshot(notifications=(EVENT,)), (None, "on its way")),
    ],
)
def test_an_event_is_on_its_way_until_it_is_received(
    scheduled: ScheduledStep,
    after: ProcessSnapshot,
    end: tuple[int | None, str],
    tab: Tab,
    tmp_path: Path,
) -> None:
    """It begins with the first snapshot that has it, and ends with the first that has not."""
    counterexample = made_of(
        step(1, ANSWERED, snapshot(), snapshot()),
        step(2, ANSWERED, snapshot(notifications=("connected", EVENT)), snapshot()),
        step(3, scheduled, after, snapshot()),
    )

    [mark] = marks_of(tab, counterexample, tmp_path)["notifications"]

    assert (mark["node"], mark["what"], mark["begins"]) == ("g/0", EVENT, 2)
    assert (mark["ends"], mark["state"]) == end


@needs_browser
def test_only_processes_that_act_or_change_have_a_lane(tab: Tab, tmp_path: Path) -> None:
    """An idle broker has none; a killed one has."""
    killing = ScheduledStep("broker/0", StepKind.CRASH, FaultKind.CRASH)
    still = made_of(step(1, ANSWERED, snapshot(), snapshot()))
    killed = made_of(step(1, killing, snapshot(), snapshot()))

    assert marks_of(tab, still, tmp_path)["lanes"] == ["g/0", "g/1"]
    assert marks_of(tab, killed, tmp_path)["lanes"] == ["g/0", "g/1", "broker/0"]


@pytest.mark.parametrize(
    ("operation", "answer", "short"),
    [
        ("create /a", "/a", "done"),
        ("delete /a", None, "done"),
        ("exists /a", None, "there is none"),
        ("exists /a", {"data": None, "version": 0, "mine": True}, "there is one, mine"),
        ("get /a", {"data": "1", "version": 0, "mine": False}, "1"),
        ("get /a", {"error": "NoNode"}, "NoNode"),
        ("children /a", ["b", "c"], "[b, c]"),
        ("multi (check /a, create /b)", [None, "/b"], "done"),
    ],
)
def test_answers_are_short(operation: str, answer: Any, short: str) -> None:
    assert short_answer(operation, answer) == short


# --- disabled processes --------------------------------------------------------------------


def test_disabled_processes_are_those_that_could_not_move() -> None:
    """One sentence each, and none for a process that had a move of its own."""
    faults = {"crash": 1, "restart": 1, "join": 1}
    system, search, found = searched(small("documented"), faults, begin="settled")
    reasons: set[str] = set()
    for violation in found.violations:
        taken = path_to(system, search, violation)
        for step, explained in zip(
            taken, counterexample_of(system, search, violation).steps, strict=True
        ):
            idle = [
                name
                for actor, name in enumerate(system.actors)
                if all(
                    move.fault or move.is_idle
                    for move in system.steps(actor, step.before[0], step.before[1 + actor])
                )
            ]
            named = [sentence.partition(" ")[0] for sentence in explained.disabled]
            assert named == [name for name in idle if name in named]
            assert step.step.fault or system.actors[step.actor] not in named
            reasons |= set(explained.disabled)

    assert "broker/0 waits for a notification, and none is under way" in reasons


@pytest.mark.parametrize(
    ("faults", "strikes", "reasons"),
    [
        ({"crash": 1}, ["crash"], ["billing/0 is gone, and the bound has no restart"]),
        ({"crash": 1, "restart": 1}, ["crash"], []),
        (
            {"crash": 2, "restart": 1},
            ["crash", "restart", "crash"],
            ["billing/0 is gone, and the budget has no restart left"],
        ),
    ],
)
def test_no_process_restarts_without_a_budget(
    faults: dict[str, int], strikes: list[str], reasons: list[str]
) -> None:
    """A killed process is disabled exactly while no restart is left."""
    system = ClusterSystem(small(), Bounds(faults))
    state = (*system.initial(), 0)
    for kind in strikes:
        state = after(system, state, kind)
    while any(not step.fault for step in system.steps(0, state[0], state[1])):
        state = after(system, state, None)

    assert [
        line for line in disabled_actors(system, state) if line.startswith("billing/0")
    ] == reasons


def after(system: ClusterSystem, state: tuple[int, ...], fault: str | None) -> tuple[int, ...]:
    """A state after a move of the first member; notifications to others do not matter here."""
    move = next(step for step in system.steps(0, state[0], state[1]) if step.fault == fault)
    account = system.account_after(0, move, state[-1])
    assert account >= 0, "there is a budget for it"
    return (move.tree, system.members[0].local_states.of(move.state), *state[2:-1], account)


# --- the page ------------------------------------------------------------------------------


def test_the_page_is_the_same_each_time(two_owners: Counterexample, tmp_path: Path) -> None:
    """The same counterexample gives the same bytes, and they load nothing."""
    written = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        assert write_counterexample_html(two_owners, tmp_path / name) == "counterexample.html"
        written.add((tmp_path / name / "counterexample.html").read_bytes())

    [page] = written
    assert b"default-src 'none'" in page
    assert not re.findall(rb"(?:src|href)=\"(?!#)|@import|url\(|innerHTML", page)


def test_nothing_in_a_counterexample_is_markup(tmp_path: Path) -> None:
    """Whatever programs write into znodes comes to the page as text."""
    evil = "</script><b>&"
    scheduled = ScheduledStep(
        "g/0", StepKind.REPLY, operation=evil, answer={"data": evil, "version": 0, "mine": True}
    )
    counterexample = replace(
        made_of(step(1, scheduled, snapshot(evil), snapshot())),
        proof=evil,
        scenario=evil,
        bound=evil,
    )

    write_counterexample_html(counterexample, tmp_path)

    page = (tmp_path / "counterexample.html").read_text()
    assert evil not in page
    found = re.search(r'id="data">(.*?)</script>', page)
    assert found is not None
    parts = json.loads(found[1])["graph"]["parts"]
    assert evil in [part["operation"] for part in parts if "operation" in part]


def opened(counterexample: Counterexample, folder: Path, where: str = "", then: str = "") -> str:
    """The page as a browser has rendered it, after it has run the script `then`."""
    return rendered(folder / write_counterexample_html(counterexample, folder), where, then)


@needs_browser
def test_an_address_chooses_a_step(two_owners: Counterexample, tmp_path: Path) -> None:
    """The state beside the picture is the one after that step."""
    page = opened(two_owners, tmp_path, "#step-17")
    state = page[page.index("<aside") :]

    assert re.findall(r'class="row on"[^>]*href="#step-17"|href="#step-17"[^>]*"row on"', page)
    assert "Step 17<" in state
    chosen = two_owners.steps[16]
    assert chosen.scheduled.operation in state
    for name in ("billing/0", "billing/1"):
        assert f"<dd>{chosen.snapshots[name].session}</dd>" in state
    assert all(sentence in state for sentence in chosen.disabled)


@needs_browser
def test_a_page_opens_at_the_violation(two_owners: Counterexample, tmp_path: Path) -> None:
    """Two owners are in one line; a row for each step after the set-up, and links."""
    page = opened(two_owners, tmp_path)
    last = len(two_owners.steps)
    [folded] = re.findall(r"▸ (\d+) steps of set-up", page)

    assert page.count('<a class="row') == 1 + last - int(folded)
    assert f"Step {last}<" in page
    assert re.search(
        r'<tr class="wrong">.*?billing/0 and .*?billing/1', page.replace("</span>", "")
    )
    assert '<p>billing/1 has fetched clicks/0-0 since <a href="#step-' in page


DONE = [
    ("press('ArrowUp')", 30),
    ("press('ArrowUp')", 29),
    ("press('ArrowDown')", 30),
    ("press('Home')", 0),
    ("press('ArrowLeft')", 0),
    ("press('ArrowRight')", 1),
    ("press('End')", 31),
    ("press('ArrowRight')", 31),
    ("document.querySelectorAll('.row')[12].click()", 12),
    ("document.querySelector('header p a').click()", 23),
    ("document.getElementById('before').click()", 22),
    ("document.getElementById('after').click()", 23),
    ("location.hash = '#step-4'", 4),
]
"""Actions in a page, in order, and the step that is chosen after each."""
BEGINNING = "#step-0,Before the first step,"
BEGINNING = "#step-0,Before the first step,"


@needs_browser
def test_the_head_keeps_its_links(two_owners: Counterexample, tmp_path: Path) -> None:
    """The line of the run goes before the statement, which alone stands out."""
    page = tmp_path / write_counterexample_html(two_owners, tmp_path)
    links = [link("counterexample.yaml", "as a scenario"), link("verdict.json", "as JSON")]
    say_in_page(page, word="violated", links=links, command="watchkeeper explore step 2")
    sizes = "[...document.querySelectorAll('header p')].map((p) => getComputedStyle(p).fontSize)"

    shown = rendered(page, then=f"document.title = {sizes}.join()")

    [head] = re.findall(r'<p class="run">.*?</p>', shown)
    assert all(one in head for one in links)
    assert "<br><code>watchkeeper explore step 2</code>" in head
    [title] = re.findall("<title>(.*?)</title>", shown)
    run, says, *others = title.split(",")
    assert run != says
    assert says not in others


@needs_browser
def test_keys_and_clicks_choose_a_step(two_owners: Counterexample, tmp_path: Path) -> None:
    """The state is that after it, and the address the one of that step."""
    done = ", ".join(f"() => {does}" for does, _ in DONE)
    then = f"""
        const press = (key) => dispatchEvent(new KeyboardEvent("keydown", {{key}}));
        const wait = () => new Promise((go) => setTimeout(go, 50));
        const seen = async () => {{
          for (const does of [{done}]) {{
            does();
            await wait();
            const rows = [...document.querySelectorAll(".row.on .number")];
            const heads = [location.hash, document.querySelector("h2").firstChild.data];
            document.title += ";" + [...heads, ...rows.map((row) => row.textContent)].join();
          }}
        }};
        document.title = "";
        seen();
    """

    page = opened(two_owners, tmp_path, then=then)

    found = re.search(r"<title>;(.*?)</title>", page)
    assert found is not None
    assert found[1].replace("✗ ", "").split(";") == [
        f"#step-{number},Step {number},{number}" if number else BEGINNING for _, number in DONE
    ]


@pytest.fixture
def lasso() -> Counterexample:
    """A counterexample of two steps, a stem of one step, and a cycle of two."""
    first, second, third, fourth, fifth = (
        step(
            number, ANSWERED, snapshot(), snapshot(notifications=(EVENT,) if number == 4 else ())
        )
        for number in range(1, 6)
    )
    counterexample = made_of(first, second, violates="progress")
    return replace(
        counterexample, stem=(third,), cycle=(fourth, fifth), proof="for ever, in step 4"
    )


@needs_browser
def test_a_cycle_is_part_of_the_picture(lasso: Counterexample, tab: Tab, tmp_path: Path) -> None:
    """All steps are drawn, and the violation is not the last of them."""
    found = marks_of(tab, lasso, tmp_path)

    assert tab.run("[steps.length, given.violation]") == [5, 2]
    assert found["cycle"] == [4, 5]
    [sent] = found["notifications"]
    assert sent == {"node": "g/1", "what": EVENT, "begins": 4, "ends": 5, "state": "received"}


@needs_browser
def test_a_cycle_is_marked(lasso: Counterexample, tmp_path: Path) -> None:
    """The page opens at the violation; the steps of the cycle are marked."""
    page = opened(lasso, tmp_path)

    assert re.findall(r'class="number">([^<]*)<', page) == ["", "1", "✗ 2", "3", "↻ 4", "↻ 5"]
    assert "Step 2<" in page
    assert "the cycle repeats for ever, from step 4" in page
    assert "part of a cycle" not in page[page.index("<aside") : page.index("</aside>")]
    assert "2 steps, then a cycle of 2" in page


@needs_browser
def test_a_step_of_a_cycle_says_so(lasso: Counterexample, tmp_path: Path) -> None:
    page = opened(lasso, tmp_path, then="document.getElementById('cycle').click()")
    state = page[page.index("<aside") : page.index("</aside>")]

    assert "Step 4<" in state
    assert "the state after step 5 is the state after step 3" in state


@needs_browser
def test_a_counterexample_may_have_no_steps(tmp_path: Path) -> None:
    """A violation in the first state has no path to it."""
    page = opened(made_of(), tmp_path)

    assert "is violated from the beginning" in page
