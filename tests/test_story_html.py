"""The page of a counterexample: what it shows is what the story says, and where it leads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from explore.cluster import ClusterSystem
from explore.impossible import impossible
from explore.story import story_of
from explore.way import way_to
from model.ownership import SINGLE, STRICT
from model.story import Deed, Stand, Story, StoryStep
from reports import story_marks
from reports.story_html import short_answer, story_data, write_story_html
from tests.exploring import searched, small

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
IDS = "/consumers/g/ids"
EVENT = f"{IDS} children changed"


def stand(
    *fetching: str, phase: str = "running", session: str = "alive", notes: tuple[str, ...] = ()
) -> Stand:
    """Where a process stands that waits for a note."""
    return Stand(phase, "a note", session, fetching, notes)


def step(
    number: int, deed: Deed, one: Stand, other: Stand, owners: dict[str, str] | None = None
) -> StoryStep:
    """A step of a story of two members and a broker."""
    stands = {"g/0": one, "g/1": other, "broker/0": stand()}
    return StoryStep(number, deed, stands, owners or {}, (f"nobody can do {number}",))


def story_of_steps(*steps: StoryStep, violates: str = SINGLE.name) -> Story:
    """A story of these steps."""
    nodes = ("g/0", "g/1", "broker/0")
    proof = "g/0 has fetched c/0 since step 1; two owners"
    first = {node: stand() for node in nodes}
    return Story("made up", "documented", violates, proof, "1 crash", nodes, steps, first, {})


ANSWERED = Deed("g/1", "is answered", operation="children /x", answer=["a"])
GONE = stand(phase="gone", session="none")


@pytest.fixture(scope="module")
def two_owners() -> Story:
    """The way to two owners that the pages to the letter leave open."""
    system, search, found = searched(small("documented"))
    [both] = [one for one in found.violations if one.what == SINGLE.name]
    return story_of(system, search, both)


# --- what is fetched and claimed -----------------------------------------------------------


def test_two_owners_are_two_bars_from_the_last_step_on(two_owners: Story) -> None:
    data = story_data(two_owners)
    last = len(two_owners.steps)

    [[column, begins, ends]] = data["shared"]

    assert (begins, ends) == (last, None)
    bars = [bar for bar in data["fetched"] if bar[0] == column and bar[3] is None]
    assert len({bar[1] for bar in bars}) == 2
    assert len(data["columns"][column][2]) == 2


def test_bars_say_what_the_stands_say(two_owners: Story) -> None:
    """After each step exactly those fetch and claim whose bars are there."""
    fetched, claimed = story_marks.fetched(two_owners), story_marks.claimed(two_owners)

    for one in two_owners.steps:
        now = [
            {(bar.node, bar.what) for bar in bars if lasts(bar, one.number)}
            for bars in (fetched, claimed)
        ]
        by_stands = {(node, at) for node, its in one.stands.items() for at in its.fetching}
        assert now == [by_stands, {(owner, at) for at, owner in one.owners.items()}]


def lasts(one: story_marks.Stretch, number: int) -> bool:
    """Whether something was so after a step."""
    return one.begins <= number and (one.ends is None or number < one.ends)


@pytest.mark.parametrize(("violates", "said"), [(SINGLE.name, []), (STRICT.name, [("g", 1)])])
def test_who_does_not_know_that_its_session_is_dead(
    violates: str, said: list[tuple[str, int]]
) -> None:
    """Two of whom one has a dead session are two owners only where that is promised."""
    zombie = stand("c/0", session="dead, and it does not know")
    story = story_of_steps(step(1, ANSWERED, zombie, stand("c/0")), violates=violates)

    assert [(one.node, one.begins) for one in story_marks.shared(story)] == said
    assert {(one.node, one.said) for one in story_marks.fetched(story)} == {
        ("g/0", "dead"),
        ("g/1", "alive"),
    }


def test_two_groups_may_fetch_one_partition() -> None:
    """Each group has a column of its own, and a claim stands with the group of its owner."""
    stands = {"g/0": stand("c/0"), "h/0": stand("c/0")}
    one = StoryStep(1, Deed("g/0", "starts"), stands, {"c/0": "h/0"})
    first = dict.fromkeys(stands, stand())
    story = replace(story_of_steps(one), nodes=("g/0", "h/0"), first=first)

    data = story_data(story)

    assert [column[:2] for column in data["columns"]] == [["g", "c/0"], ["h", "c/0"]]
    assert data["claimed"] == [[1, 1, 1, None]]
    assert data["shared"] == []


def test_what_was_so_before_the_first_step_begins_with_it() -> None:
    """It is not guessed from who does something in that step."""
    story = story_of_steps(step(1, ANSWERED, stand("c/0"), stand("c/1"), {"c/0": "g/0"}))
    first = {**story.first, "g/0": stand("c/0", notes=(EVENT,))}
    story = replace(story, first=first, first_owners={"c/0": "g/0"})

    begun = {(one.node, one.begins) for one in story_marks.fetched(story)}
    [event] = story_marks.notes(story)

    assert begun == {("g/0", 0), ("g/1", 1)}
    assert [(one.what, one.begins) for one in story_marks.claimed(story)] == [("c/0", 0)]
    assert (event.begins, event.ends, event.said) == (0, 1, "heard")
    assert story_data(story)["steps"][0]["changes"] == ["g/1 fetches c/1"]


# --- events --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "after", "end"),
    [
        (Deed("g/0", "hears", operation=EVENT), stand(), (3, "heard")),
        (Deed("g/0", "is disconnected", "disconnect"), stand(), (3, "lost")),
        (Deed("g/0", "is answered, then loses a reply", "ghost"), stand(), (3, "lost")),
        (Deed("g/0", "is killed", "crash"), GONE, (3, "lost")),
        (ANSWERED, stand(notes=(EVENT,)), (None, "on its way")),
    ],
)
def test_an_event_is_on_its_way_until_it_is_heard(
    deed: Deed, after: Stand, end: tuple[int | None, str]
) -> None:
    """It was sent where it is seen first, and ends where it is not seen any more."""
    story = story_of_steps(
        step(1, ANSWERED, stand(), stand()),
        step(2, ANSWERED, stand(notes=("connected", EVENT)), stand()),
        step(3, deed, after, stand()),
    )

    [one] = story_marks.notes(story)

    assert (one.node, one.what, one.begins) == ("g/0", EVENT, 2)
    assert (one.ends, one.said) == end


def test_only_whom_something_concerns_has_a_lane() -> None:
    """A broker that stands still has none; one that is killed has."""
    still = story_of_steps(step(1, ANSWERED, stand(), stand()))
    killed = story_of_steps(
        step(1, Deed("broker/0", "is killed", "broker_crash"), stand(), stand())
    )

    assert story_data(still)["lanes"] == [0, 1]
    assert story_data(killed)["lanes"] == [0, 1, 2]


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


# --- what could not be done ----------------------------------------------------------------


def test_what_could_not_be_done_names_whoever_could_do_nothing() -> None:
    """One sentence each, and nobody who had a move of its own."""
    faults = {"crash": 1, "restart": 1, "join": 1}
    system, search, found = searched(small("documented"), faults, begin="settled")
    said: set[str] = set()
    for violation in found.violations:
        taken = way_to(system, search, violation)
        for one, told in zip(taken, story_of(system, search, violation).steps, strict=True):
            idle = [
                name
                for actor, name in enumerate(system.actors)
                if all(
                    move.fault or move.is_idle
                    for move in system.steps(actor, one.before[0], one.before[1 + actor])
                )
            ]
            named = [sentence.partition(" ")[0] for sentence in told.impossible]
            assert named == [name for name in idle if name in named]
            assert one.step.fault or system.actors[one.actor] not in named
            said |= set(told.impossible)

    assert "broker/0 waits for a note, and none is under way" in said


@pytest.mark.parametrize(
    ("faults", "befalls", "said"),
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
def test_nobody_starts_without_a_budget(
    faults: dict[str, int], befalls: list[str], said: list[str]
) -> None:
    """Who is gone is gone as long as there is no restart left, and only then."""
    system, _, _ = searched(small(), faults, seconds=0)
    state = (*system.initial(), 0)
    for kind in befalls:
        state = after(system, state, kind)
    while any(not one.fault for one in system.steps(0, state[0], state[1])):
        state = after(system, state, "")

    assert [one for one in impossible(system, state) if one.startswith("billing/0")] == said


def after(system: ClusterSystem, state: tuple[int, ...], fault: str) -> tuple[int, ...]:
    """A state after a move of the first member; what others hear of it does not matter here."""
    move = next(one for one in system.steps(0, state[0], state[1]) if one.fault == fault)
    account = system.account_after(0, move, state[-1])
    assert account >= 0, "there is a budget for it"
    return (move.tree, system.members[0].locals.of(move.local), *state[2:-1], account)


# --- the page ------------------------------------------------------------------------------


def test_the_page_is_the_same_each_time(two_owners: Story, tmp_path: Path) -> None:
    """The same story gives the same bytes, and they load nothing."""
    written = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        assert write_story_html(two_owners, tmp_path / name) == "counterexample.html"
        written.add((tmp_path / name / "counterexample.html").read_bytes())

    [page] = written
    assert b"default-src 'none'" in page
    assert not re.findall(rb"(?:src|href)=\"(?!#)|@import|url\(|innerHTML", page)


def test_nothing_in_a_story_is_markup(tmp_path: Path) -> None:
    """Whatever programs write into znodes comes to the page as text."""
    evil = "</script><b>&"
    deed = Deed("g/0", evil, operation=evil, answer={"data": evil, "version": 0, "mine": True})
    story = replace(
        story_of_steps(step(1, deed, stand(evil), stand())), proof=evil, scenario=evil, bound=evil
    )

    write_story_html(story, tmp_path)

    page = (tmp_path / "counterexample.html").read_text()
    assert evil not in page
    found = re.search(r'id="data">(.*?)</script>', page)
    assert found is not None
    assert json.loads(found[1])["steps"][0]["does"] == evil


def opened(story: Story, folder: Path, where: str = "", then: str = "") -> str:
    """What stands in the page of a story, as a browser has drawn it; `then` is done in it."""
    name = write_story_html(story, folder)
    with (folder / name).open("a") as page:
        page.write(f"<script>{then}</script>")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"]
    flags += ["--disable-background-networking", f"--user-data-dir={folder}/browser"]
    address = (folder / name).as_uri() + where
    command = [BROWSER or "", *flags, "--virtual-time-budget=3000", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return unescape(done.stdout)


needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no browser")


@needs_browser
def test_an_address_chooses_a_step(two_owners: Story, tmp_path: Path) -> None:
    """The state beside the picture is the one after that step."""
    page = opened(two_owners, tmp_path, "#step-17")
    state = page[page.index("<aside") :]

    assert re.findall(r'class="row on"[^>]*href="#step-17"|href="#step-17"[^>]*"row on"', page)
    assert "Step 17<" in state
    chosen = two_owners.steps[16]
    assert chosen.deed.operation in state
    for one in ("billing/0", "billing/1"):
        assert f"<dd>{chosen.stands[one].session}</dd>" in state
    assert all(one in state for one in chosen.impossible)


@needs_browser
def test_a_page_opens_at_the_violation(two_owners: Story, tmp_path: Path) -> None:
    """Two owners stand in one line; a row for each step, and links to those of the proof."""
    page = opened(two_owners, tmp_path)
    last = len(two_owners.steps)

    assert page.count('<a class="row') == last
    assert f"Step {last}<" in page
    assert re.search(
        r'<tr class="wrong">.*?billing/0 and .*?billing/1', page.replace("</span>", "")
    )
    assert '<p>billing/1 has fetched clicks/0-0 since <a href="#step-' in page


DONE = [
    ("press('ArrowUp')", 30),
    ("press('ArrowUp')", 29),
    ("press('ArrowDown')", 30),
    ("press('Home')", 1),
    ("press('ArrowLeft')", 1),
    ("press('End')", 31),
    ("press('ArrowRight')", 31),
    ("document.querySelectorAll('.row')[11].click()", 12),
    ("document.querySelector('header p a').click()", 23),
    ("document.getElementById('before').click()", 22),
    ("document.getElementById('after').click()", 23),
    ("location.hash = '#step-4'", 4),
]
"""What is done in a page, one after the other, and the step that is chosen then."""


@needs_browser
def test_keys_and_clicks_choose_a_step(two_owners: Story, tmp_path: Path) -> None:
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
        f"#step-{number},Step {number},{number}" for _, number in DONE
    ]


@pytest.fixture
def for_ever() -> Story:
    """A story of two steps, one more to where it goes round, and a round of two."""
    one, other, third, fourth, fifth = (
        step(number, ANSWERED, stand(), stand(notes=(EVENT,) if number == 4 else ()))
        for number in range(1, 6)
    )
    story = story_of_steps(one, other, violates="progress")
    return replace(story, way_in=(third,), circle=(fourth, fifth), proof="for ever, in step 4")


def test_what_comes_for_ever_is_a_part_of_the_picture(for_ever: Story) -> None:
    """Everything that is told is drawn, and the violation is not the last of it."""
    data = story_data(for_ever)

    assert (len(data["steps"]), data["violation"], data["circle"]) == (5, 2, [4, 5])
    assert data["notes"] == [[1, EVENT, 4, 5, "heard"]]


@needs_browser
def test_what_comes_for_ever_is_marked(for_ever: Story, tmp_path: Path) -> None:
    """The page opens at the violation; steps of the circle say that they come again."""
    page = opened(for_ever, tmp_path)

    assert re.findall(r'class="number">([^<]*)<', page) == ["1", "✗ 2", "3", "↻ 4", "↻ 5"]
    assert "Step 2<" in page
    assert "and this for ever: again from step 4" in page
    assert "all is as it was" not in page[page.index("<aside") : page.index("</aside>")]
    assert "2 steps, then round a circle of 2" in page


@needs_browser
def test_a_step_of_a_circle_says_so(for_ever: Story, tmp_path: Path) -> None:
    page = opened(for_ever, tmp_path, then="document.getElementById('circle').click()")
    state = page[page.index("<aside") : page.index("</aside>")]

    assert "Step 4<" in state
    assert "after step 5 all is as it was after step 3" in state


@needs_browser
def test_no_steps_are_a_story_too(tmp_path: Path) -> None:
    """What is violated in the beginning has no way that leads to it."""
    page = opened(story_of_steps(), tmp_path)

    assert "It is violated from the beginning" in page
