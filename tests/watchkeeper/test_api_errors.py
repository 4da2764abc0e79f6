"""What `simulate` and `strategies` say to who gives them something else than they expect."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from enum import Enum
from functools import partial
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import find, settings

import watchkeeper
from watchkeeper import Program, simulate
from watchkeeper.api import strategies
from watchkeeper.api.simulate import NotDeterministic
from watchkeeper.model.actor.effects import new_session, next_event, sleep
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.scenarios import ScenarioError, load

FIELDS: dict[str, Any] = {
    "name": "mine",
    "about": "one consumer",
    "clusters": {"main": {"brokers": 1, "topics": {"clicks": {"partitions": 2}}}},
    "groups": {"group": {"consumers": 1, "streams": {"clicks": 1}}},
    "timeline": [{"at": "0s", "produce": "clicks", "rate": "10/s"}],
    "settle": "2s",
}


# --- the scenario ----------------------------------------------------------------------


@pytest.mark.parametrize("source", [None, 5, [], b"", b"consumer-crash", True])
def test_what_is_no_scenario_is_said(source: Any) -> None:
    """What it is, and what was expected."""
    with pytest.raises(TypeError, match=r"^the scenario is .*; expected the name of a shipped"):
        simulate(source)


def test_no_name_is_no_scenario() -> None:
    """An empty text is no name."""
    with pytest.raises(
        ScenarioError, match=r"is empty; expected one of: acks-of-two, administrator-faults"
    ):
        simulate("")


def test_a_path_names_a_file(tmp_path: Path) -> None:
    """As its text does."""
    path = tmp_path / "mine.yaml"
    path.write_text(str(FIELDS))  # a mapping of plain values is YAML

    assert simulate(path).fingerprint == simulate(str(path)).fingerprint
    assert load(path).source == str(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Path("x"), "groups.group.starts is PosixPath('x') of type PosixPath"),
        (b"1s", "groups.group.starts is b'1s' of type bytes"),
        ({1, 2}, "groups.group.starts is {1, 2} of type set"),
        (datetime.timedelta(seconds=1), "of type timedelta"),
        (1j, "groups.group.starts is 1j of type complex"),
        ({5: "x"}, "groups.group.starts has the key 5, 5 of type int; expected text"),
        ([[object()]], "groups.group.starts[0][0] is <object objec"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_yaml_does_not_have_are_said(value: Any, message: str) -> None:
    """Where it stands, what it is, and what was expected."""
    groups = {"group": {**FIELDS["groups"]["group"], "starts": value}}

    with pytest.raises(TypeError) as refused:
        simulate({**FIELDS, "groups": groups})

    assert message in str(refused.value)
    assert "expected text" in str(refused.value)


def test_a_mapping_in_itself_is_said() -> None:
    """It has no end."""
    fields = dict(FIELDS)
    fields["groups"] = fields

    with pytest.raises(ValueError, match=r"^groups is nested more than 30 deep"):
        simulate(fields)


class Word(str, Enum):  # noqa: UP042  (its `str` is not its value)
    """A word that is text as well."""

    HARDENED = "hardened"


def test_values_that_are_like_plain_ones_are_taken() -> None:
    """Mappings of all kinds, tuples, words of an enumeration."""
    groups: Mapping[str, Any] = MappingProxyType(FIELDS["groups"])
    fields = {**FIELDS, "variant": Word.HARDENED, "groups": groups}
    fields["timeline"] = tuple(FIELDS["timeline"])

    assert simulate(fields).fingerprint == simulate(FIELDS).fingerprint


# --- the other arguments ---------------------------------------------------------------


@pytest.mark.parametrize("seed", [True, None, "7", 7.0])
def test_what_is_no_seed_is_said(seed: Any) -> None:
    """A truth value is none either."""
    with pytest.raises(TypeError, match=r"^seed is .*; expected a whole number$"):
        simulate(FIELDS, seed=seed)


@pytest.mark.parametrize("variant", [5, True, ["hardened"], VARIANTS["hardened"]])
def test_what_is_no_variant_is_said(variant: Any) -> None:
    """It is named by its name."""
    with pytest.raises(TypeError, match=r"^variant is .*; expected a variant's name or None$"):
        simulate(FIELDS, variant=variant)


@pytest.mark.parametrize(
    ("variant", "hint"), [("kafka_8", "did you mean 'kafka_08'"), ("", "expected one of")]
)
def test_a_variant_that_is_not_there_is_said(variant: str, hint: str) -> None:
    """It is not the file that is wrong."""
    with pytest.raises(ScenarioError, match=f"^variant: '{variant}' is not a variant; {hint}"):
        simulate(FIELDS, variant=variant)


async def turn(zk: Any, me: Any, state: Any) -> Any:
    """A turn that rests."""
    await new_session()
    await sleep(1000)
    return state


def plain(zk: Any, me: Any, state: Any) -> Any:
    """A turn that cannot wait."""
    return state


async def several(zk: Any, me: Any, state: Any) -> Any:
    """A turn that is a generator."""
    yield state


@pytest.mark.parametrize("consumer", [5, turn, (turn, None, None)])
def test_what_is_no_program_is_said(consumer: Any) -> None:
    """A turn alone is none."""
    with pytest.raises(TypeError, match=r"^consumer is .*; expected a Program\(turn, None, "):
        simulate(FIELDS, consumer=consumer)


@pytest.mark.parametrize("wrong", [plain, several, None, "turn"])
def test_what_is_no_turn_is_said(wrong: Any) -> None:
    """It has to be an `async def`."""
    with pytest.raises(TypeError, match=r"^the turn of the consumer is .*; expected an `async "):
        simulate(FIELDS, consumer=Program(wrong, None, None))


class Turns:
    """A turn that carries something."""

    async def __call__(self, zk: Any, me: Any, state: Any) -> Any:
        """Take a turn."""
        return await turn(zk, me, state)


@pytest.mark.parametrize("right", [turn, partial(turn), Turns()])
def test_turns_in_disguise_are_taken(right: Any) -> None:
    """What can be awaited is a turn."""
    assert simulate(FIELDS, consumer=Program(right, None, None)).plan.has_own_program


def test_an_error_of_a_program_says_where_it_came_from() -> None:
    """Who, when, which seed: enough to run it again and stop there."""

    async def stumbles(zk: Any, me: Any, state: Any) -> Any:
        await new_session()
        await sleep(500)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine") as raised:
        simulate(FIELDS, seed=3, consumer=Program(stumbles, None, None))

    who, which = raised.value.__notes__
    assert who.startswith("in group/0 at 1.5")
    assert which == "of mine, hardened, seed 3"


# --- the result ------------------------------------------------------------------------


def test_a_result_is_a_line_where_it_is_shown_among_others() -> None:
    """The report is for `str`."""
    result = simulate({**FIELDS, "never": [{"event": "rebalance completed"}]}, seed=4)

    assert repr(result) == (
        "<Result of mine, hardened, seed 4: violated never: rebalance completed, "
        f"{len(result.trace)} events>"
    )
    assert str(result).count("\n") > 10


def test_a_scenario_from_no_file_is_not_called_one() -> None:
    """What is printed as the way to run it again can be followed."""
    assert simulate(FIELDS, seed=4).command == (
        "simulate(<the fields of 'mine'>, seed=4, variant='hardened')"
    )
    assert simulate(FIELDS, consumer=Program(turn, None, None)).command == (
        "simulate(<the fields of 'mine'>, seed=0, variant='hardened', consumer=...)"
    )
    assert simulate("steady-join").command == (
        "watchkeeper run steady-join --variant hardened --seed 0"
    )


# --- strategies ------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_scenarios_are_drawn_on_layouts_that_the_variant_allows(variant: str) -> None:
    """Each one that is drawn can be planned."""
    allowed = VARIANTS[variant].layouts
    drawn = strategies.scenarios(variant=variant)

    def is_refused(scenario: Any) -> bool:
        return scenario["clusters"]["main"]["layout"] not in allowed

    with pytest.raises(Exception, match="is_refused"):
        find(drawn, is_refused, settings=settings(max_examples=300, deadline=None))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variant": "kafka_8"}, "'kafka_8' is not a variant; did you mean 'kafka_08'"),
        ({"variant": "kafka_07", "layouts": ("0.8",)}, "kafka_07 runs on no layout but 0.7"),
        ({"kinds": ("crsh",)}, "'crsh' is not a fault that can be drawn; did you mean 'crash'"),
        ({"kinds": ("skew",)}, "'skew' is not a fault that can be drawn; expected one of"),
        ({"kinds": "crash"}, "kinds is 'crash'; expected some of: crash, crash_host"),
        ({"kinds": ()}, r"kinds is \(\); expected some of: crash, crash_host"),
    ],
)
def test_what_cannot_be_drawn_is_said(given: dict[str, Any], message: str) -> None:
    """At once, and not when something is drawn."""
    with pytest.raises(ValueError, match=message):
        strategies.scenarios(**given)


def test_kinds_of_single_timelines_are_checked_too() -> None:
    """It is the same list."""
    with pytest.raises(ValueError, match="'crsh' is not a fault that can be drawn"):
        strategies.faults(consumers=1, brokers=1, kinds=["crsh"])


def test_a_program_that_depends_on_more_than_the_seed_is_refused() -> None:
    """The second run differs from the first, and both events are named."""
    turns = count()

    async def turn(zk: Any, me: Any, memory: Any) -> Any:
        await new_session()
        for _ in range(next(turns)):
            await zk.exists("/")
        await next_event()
        return memory

    program = Program(turn, None, None)
    with pytest.raises(NotDeterministic, match="depends on more than the seed"):
        simulate("steady-join", consumer=program, check_determinism=True)


def test_a_run_that_is_repeated_says_so() -> None:
    """With the same program and profile."""
    result = simulate("steady-join", check_determinism=True)
    assert result.is_repeated
    assert not simulate("steady-join").is_repeated


def test_the_door_lists_what_there_is() -> None:
    """Names are imported at their first use; they are listed before it."""
    assert dir(watchkeeper) == sorted(watchkeeper.__all__)
