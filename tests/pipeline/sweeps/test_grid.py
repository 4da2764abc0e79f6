"""What a sweep runs: grids and chunks, paths into a scenario, seeds, choices of runners."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.console.exit import Stop
from watchkeeper.pipeline.sweeps.grid import Cell, Grid, is_repeated
from watchkeeper.pipeline.sweeps.runner_choice import Cost, chosen, chunk_runs
from watchkeeper.pipeline.sweeps.trace_sampling import Candidate, _in_turn, selected
from watchkeeper.scenarios import ScenarioError, load
from watchkeeper.scenarios.overrides import BadChange, Change, changed, parse_change, resolved
from watchkeeper.sweep.grid import Request, planned, seeds_in

CRASH = load("consumer-crash")


# --- chunks ----------------------------------------------------------------------------


@given(st.integers(1, 7), st.integers(0, 50), st.integers(1, 40), st.integers(1, 60))
def test_chunks_hold_every_run_once(cells: int, first: int, seeds: int, size: int) -> None:
    """In order, none left out, none larger than it should be."""
    plan = CRASH.plan()
    every = tuple(Cell(number, (), plan, None) for number in range(cells))
    grid = Grid(every, range(first, first + seeds))

    found = []
    for number in range(grid.chunks(size)):
        chunk = grid.chunk(number, size)
        assert 0 < chunk.runs <= size
        for seed_range in chunk.stretches:
            found += [
                (seed_range.first + at, seed_range.cell.number, seed)
                for at, seed in enumerate(seed_range.seeds)
            ]

    pairs = product(range(cells), range(first, first + seeds))
    assert found == [(number, *pair) for number, pair in enumerate(pairs)]


def test_about_one_run_in_twenty_is_run_twice() -> None:
    """Which is drawn from its name, the same on every machine."""
    cell = Cell(0, (), CRASH.plan(), None)
    twice = [seed for seed in range(4000) if is_repeated(cell.run_id(seed), seed)]

    assert 150 < len(twice) < 250
    assert twice[:4] == [0, 108, 135, 139]


# --- how large, and by whom ------------------------------------------------------------


@given(
    st.integers(1, 10**7),
    st.floats(1e-4, 100),
    st.floats(1, 20),
)
def test_a_chunk_is_worth_sending(runs: int, cheapest: float, ratio: float) -> None:
    """It holds at least a second of the cheapest work, unless there is less."""
    size = chunk_runs(runs, Cost(cheapest, cheapest * ratio))

    assert 1 <= size <= runs
    assert size == runs or size * cheapest >= 1
    assert size == 1 or (size - 1) * cheapest <= 30


@pytest.mark.parametrize(
    ("wanted", "seconds", "jobs", "has_master", "name"),
    [
        ("auto", 2, 8, False, "process"),
        ("auto", 200, 1, False, "process"),
        ("auto", 20, 2, False, "pool"),
        ("auto", 2000, 2, False, "pool"),
        ("auto", 20, 2, True, "pool"),
        ("auto", 2000, 2, True, "spark"),
        ("spark", 2, 2, False, "spark"),
        ("process", 2000, 8, True, "process"),
        ("auto", 0, 8, True, "process"),
    ],
)
def test_who_does_it(wanted: str, seconds: float, jobs: int, has_master: bool, name: str) -> None:
    """By the work there is, unless one is named; the reason is printed."""
    choice = chosen(wanted, seconds, jobs=jobs, has_master=has_master)

    assert choice.name == name
    assert choice.why


# --- which traces ----------------------------------------------------------------------


def test_every_failure_signature_has_its_turn() -> None:
    """Where there is not room for all, none takes the room of another."""
    many = [Candidate(f"a{at}", 0, at, "") for at in range(10)]
    few = [Candidate("b0", 0, 0, "")]

    assert [candidate.run_id for candidate in _in_turn([many, few], 4)] == [
        "a0",
        "b0",
        "a1",
        "a2",
    ]


def test_of_what_does_not_fail_a_sample_is_kept() -> None:
    """One in a hundred, at most twenty; the same whichever way the tables are cut."""
    pa = pytest.importorskip("pyarrow")
    rows = [
        {
            "run_id": f"run-{at}",
            "cell": 0,
            "seed": at,
            "verdict": "holds",
            "signatures": [],
            "fingerprint": "",
        }
        for at in range(1500)
    ]

    def kept(size: int, number: int) -> list[str]:
        tables = [
            pa.Table.from_pylist(rows[at : min(at + size, number)])
            for at in range(0, number, size)
        ]
        return sorted(candidate.run_id for candidate in selected(tables, 100))

    assert len(kept(100, 300)) == 3
    assert len(kept(100, 5)) == 1
    assert kept(1500, 1500) == kept(7, 1500)
    assert len(kept(7, 1500)) == 15


# --- paths -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "path", "values"),
    [
        ("timeline.1.at=5s,10s", ("timeline", 1, "at"), ["5s", "10s"]),
        (
            "groups.billing.config.zookeeper.session.timeout.ms=2000",
            ("groups", "billing", "config", "zookeeper.session.timeout.ms"),
            [2000],
        ),
        (
            "groups.billing.config.rebalance.max.retries=2,4",
            ("groups", "billing", "config", "rebalance.max.retries"),
            [2, 4],
        ),
        ("clusters.main.session_timeout=5s", ("clusters", "main", "session_timeout"), ["5s"]),
        ("strict=true,false", ("strict",), [True, False]),
        (
            "groups.billing.consumers=2,[{id: a}, {id: b}]",
            ("groups", "billing", "consumers"),
            [2, [{"id": "a"}, {"id": "b"}]],
        ),
        ("settle=1s,1s,2s", ("settle",), ["1s", "2s"]),
    ],
)
def test_a_path_leads_to_a_value(change: str, path: tuple[Any, ...], values: list[Any]) -> None:
    """Fields, names, places in lists; settings by Kafka's names, with their dots."""
    found = parse_change(change)

    assert resolved(CRASH.document, found.path) == path
    assert list(found.values) == values


WRONG = [
    ("timelin.1.at=3s", "'timelin' is not in the scenario; did you mean 'timeline'?"),
    ("timeline.9.at=4s", "timeline has no entry 9; expected 0 to 1"),
    ("timeline.1.att=3s", "'att' is not in timeline[1]; did you mean 'at'?"),
    ("groups.biling.consumers=3", "'biling' is not in groups; did you mean 'billing'?"),
    (
        "groups.billing.config.rebalance.max.retry=3",
        "'rebalance.max.retry' is not in groups.billing.config; did you mean "
        "'rebalance.max.retries'?",
    ),
    ("settle.x=3", "settle is '12s', and there is nothing inside"),
    ("settle", "'settle' is not a change; expected PATH=VALUE,VALUE,..."),
    ("settle=", "settle is given no value"),
    ("settle=*x", "settle: '*x' cannot be read: it is not YAML"),
    ("settle=5", "with settle=5: settle: 5 is not a duration"),
    ("timeline.1.crash=billing/7", "with timeline.1.crash=billing/7: timeline[1].crash:"),
    ("settle=2s --set settle=3s", "settle stands twice"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_wrong_change_is_reported(change: str, message: str, tmp_path: Path) -> None:
    """With the nearest word, or what was expected; before anything is written."""
    changes = tuple(change.split(" --set "))
    with pytest.raises(Stop) as stopped:
        planned(Request("consumer-crash", tmp_path / "out", changes=changes))

    assert stopped.value.code == 4
    assert str(stopped.value).startswith("Invalid value for '--set': ")
    assert message in str(stopped.value)
    assert not (tmp_path / "out").exists()


def test_a_changed_scenario_is_what_it_says() -> None:
    """The value is another, the name too; everything else is as it was."""
    text = changed(CRASH.document, [("timeline.1.at", "9s"), ("settle", "3s")], "other")
    from watchkeeper.scenarios import from_text

    plan, other_plan = CRASH.plan(), from_text("other.yaml", text).plan()

    assert (other_plan.name, other_plan.settle_us, other_plan.timeline[1].at_us) == (
        "other",
        3_000_000,
        9_000_000,
    )
    assert (plan.clusters, plan.groups) == (other_plan.clusters, other_plan.groups)


def test_a_path_that_was_not_there_is_made() -> None:
    """A field that has a default, and what is inside of it."""
    text = changed(CRASH.document, [("groups.billing.config.rebalance.max.retries", 9)], "x")

    assert "rebalance.max.retries: 9" in text


def change_or_refusal(text: str) -> Change | str:
    """A change whose path leads somewhere in the scenario, or why it is none."""
    try:
        change = parse_change(text)
        resolved(CRASH.document, change.path)
    except (BadChange, ScenarioError) as refusal:
        return str(refusal)
    return change


PATHS_INSIDE = ["about", "settle", "name", "groups.billing.consumers", "timeline.1.at"]
"""Random text hardly ever leads somewhere; these do."""


@given(st.sampled_from(PATHS_INSIDE) | st.text(max_size=30), st.text(max_size=10))
def test_a_random_change_is_made_or_refused(path: str, value: str) -> None:
    """The changed text holds the value at the path; a refusal is a sentence."""
    made = change_or_refusal(f"{path}={value}")

    if isinstance(made, Change):
        text = changed(CRASH.document, [(made.path, made.values[0])], "x")
        found: Any = yaml.safe_load(text)
        place = resolved(CRASH.document, made.path)
        for key in place:
            found = found[key]
        assert found == ("x" if place == ("name",) else made.values[0])
    else:
        assert made


# --- seeds, variants, sizes ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1000", range(1000)), ("7..7", range(7, 8)), (" 5..9 ", range(5, 10)), ("0..0", range(1))],
)
def test_seeds(text: str, seeds: range) -> None:
    """A number of seeds, or the first and the last."""
    assert seeds_in(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all", "'all' is neither a number of seeds, such as 100, nor FIRST..LAST"),
        ("-1..4", "'-1..4' is neither a number of seeds"),
        ("0:1000", "'0:1000' is neither a number of seeds"),
        ("1..2..3", "'1..2..3' is neither a number of seeds"),
        ("9..8", "'9..8' is no seed; expected at least 1"),
        ("0", "'0' is no seed; expected at least 1"),
        ("99999999999", "is more than 1,000,000,000 seeds"),
    ],
)
def test_wrong_seeds_are_reported(text: str, message: str) -> None:
    """In a sentence, and the command ends with 4."""
    with pytest.raises(Stop, match="Invalid value for '--seeds'") as stopped:
        seeds_in(text)

    assert stopped.value.code == 4
    assert message in str(stopped.value)


def test_wrong_variants_are_reported(tmp_path: Path) -> None:
    """With the nearest name."""
    with pytest.raises(Stop, match="did you mean 'hardened'"):
        planned(Request("consumer-crash", tmp_path, variants="kafka_08,hardend"))


def test_a_grid_may_be_too_large(tmp_path: Path) -> None:
    """Five thousand choices, or fewer."""
    many = ",".join(f"{ms}ms" for ms in range(1, 101))
    changes = (f"settle={many}", f"timeline.1.at={many}")
    with pytest.raises(Stop, match="10,000 choices"):
        planned(Request("consumer-crash", tmp_path, changes=changes))


def test_a_variant_that_does_not_fit_is_reported(tmp_path: Path) -> None:
    """As `run` reports it: Kafka 0.7 knows the layout of 0.8 not."""
    change = ('clusters.main.layout="0.7","0.8"',)
    with pytest.raises(Stop, match=r"with clusters\.main\.layout=0\.8: .*kafka_07 does not run"):
        planned(Request("consumer-crash", tmp_path, variants="kafka_07", changes=change))


# --- what a scenario says itself -------------------------------------------------------


def test_a_campaign_says_what_it_sweeps(tmp_path: Path) -> None:
    """Its values, variants and seeds; what the command gives comes first."""
    own = planned(Request("retries-against-timeout", tmp_path))
    assert len(own.grid.cells) == 96
    assert own.grid.seeds == range(20)
    assert own.variants == ("kafka_08", "hardened")

    backoff = "groups.billing.config.rebalance.backoff.ms"
    given_too = planned(
        Request(
            "retries-against-timeout",
            tmp_path,
            seeds="3..4",
            variants="kafka_07",
            changes=(f"{backoff}=700",),
        )
    )
    assert len(given_too.grid.cells) == 12
    assert {dict(cell.parameters)[backoff] for cell in given_too.grid.cells} == {"700"}
    assert given_too.grid.seeds == range(3, 5)
    assert {cell.plan.variant for cell in given_too.grid.cells} == {"kafka_07"}
    assert (
        given_too.grid.cells[0].plan.groups[0].consumers[0].settings.rebalance_backoff_ms == 700
    )


def test_what_is_swept_is_pinned(tmp_path: Path) -> None:
    """Another command has another digest; the same one has the same."""
    base = Request("consumer-crash", tmp_path, seeds="0..3")
    others = [
        Request("session-expiry", tmp_path, seeds="0..3"),
        Request("consumer-crash", tmp_path, seeds="0..4"),
        Request("consumer-crash", tmp_path, seeds="0..3", variants="kafka_08"),
        Request("consumer-crash", tmp_path, seeds="0..3", changes=("settle=9s",)),
    ]
    digests = [planned(text).pinned()["digest"] for text in (base, base, *others)]

    assert digests[0] == digests[1]
    assert len(set(digests)) == 1 + len(others)
