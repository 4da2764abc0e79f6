"""The promise behind memory: who breaks it is named with the line, and the variants keep it.

A turn depends on its memory and its answers alone, and equal memories behave alike.
"""

from __future__ import annotations

import gc
import pickle
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.checker.user_programs import module_of
from watchkeeper import explore
from watchkeeper.checker.actors import compile
from watchkeeper.checker.actors.compile import CompiledProgram
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.contracts.contracts import (
    BrokenContract,
    Forbidden,
    IteratesOverSet,
    NeverWaits,
    NotDeterministic,
    UnequalStates,
)
from watchkeeper.checker.contracts.determinism import guarded, watched
from watchkeeper.checker.contracts.set_iteration import set_iterations
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.model.actor.program import Program
from watchkeeper.model.broker.administrator import Administrator, administrator
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.programs import broker_program, consumer_program
from watchkeeper.scenarios import from_text

PERF_COUNTER = time.perf_counter
HEAD = """\
import asyncio
import datetime as dt
import os
import random
import secrets
import time
import uuid
from dataclasses import dataclass, field
from datetime import date, datetime
from random import sample
from time import monotonic as ticks, time as clock

from watchkeeper.model.actor import operations
from watchkeeper.model.actor.effects import connected, new_session, next_event, sleep
from watchkeeper.model.actor.errors import ConnectionLoss, NoNode
from watchkeeper import Ended

SEEN = []
COUNT = 0
NAMES = frozenset({"x", "y"})


"""


def refusal(
    turn: str, folder: Path, state: str = "None", **faults: int
) -> tuple[BrokenContract, str]:
    """What is said of a program, and its line that has a mark `# here`."""
    text = HEAD + turn + f"\n\nFIRST = {state}\n"
    module = module_of("program", text, folder)
    programs = {name: Program(module.turn, name, module.FIRST) for name in ("one", "two")}
    with pytest.raises(BrokenContract) as caught:
        explore(programs, faults=faults, max_states=2_000)
    marked = [number for number, line in enumerate(text.splitlines(), 1) if "# here" in line]
    (line,) = marked
    return caught.value, f"{folder / 'program.py'}:{line}"


# --- clocks, dice, and what is no operation --------------------------------------------

REACHING = {
    "time.time()": "time.time",
    "clock()": "time.time",
    "ticks()": "time.monotonic",
    "time.perf_counter_ns()": "time.perf_counter_ns",
    "time.localtime()": "time.localtime",
    "datetime.now()": "datetime.now",
    "dt.datetime.utcnow()": "datetime.utcnow",
    "date.today()": "",
    "uuid.uuid4()": "os.urandom",
    "uuid.uuid1()": "uuid.uuid1",
    "os.urandom(2)": "os.urandom",
    "secrets.token_hex(2)": "os.urandom",
    "random.random()": "random.random",
    "sample([1, 2], 1)": "random.getrandbits",
    "random.Random().random()": "",
    "id(memory)": "id",
    "hash('one')": "hash",
}
"""What a turn calls -> the name in the error, where that is always the same."""


@pytest.fixture(params=[False, True], ids=["", "after virtual time"])
def replaced(request: pytest.FixtureRequest) -> None:
    """Names that virtual time has replaced in this process name the same lines."""
    if request.param:
        pytest.importorskip("greenlet")
        from watchkeeper.virtual.world.run import prepare

        prepare()


@pytest.mark.usefixtures("replaced")
@pytest.mark.parametrize("called", REACHING)
def test_reading_the_machine_is_named_with_the_line(called: str, tmp_path: Path) -> None:
    turn = f"""\
async def turn(zk, me, memory):
    await new_session()
    await zk.create(f"/{{{called}}}")  # here
    return memory
"""
    error, line = refusal(turn.replace('f"/{', "'/' + str(").replace('}")', "))"), tmp_path)

    assert isinstance(error, Forbidden)
    assert f"one calls {REACHING[called]}" in str(error)
    assert f"at {line};" in str(error)


def test_the_line_is_that_of_a_helper_if_it_calls_the_clock(tmp_path: Path) -> None:
    turn = """\
def stamp():
    return str(clock())  # here


async def turn(zk, me, memory):
    await new_session()
    await zk.create(stamp())
"""
    error, line = refusal(turn, tmp_path)

    assert f"one calls time.time() at {line};" in str(error)


def test_a_refusal_cannot_be_caught_by_the_program(tmp_path: Path) -> None:
    turn = """\
async def turn(zk, me, memory):
    await new_session()
    try:
        now = clock()  # here
    except Exception:
        now = 0
    await next_event()
    return memory
"""
    error, line = refusal(turn, tmp_path)

    assert line in str(error)


def test_the_clock_is_back_after_a_turn() -> None:
    own = time.time
    with guarded("one"), watched("one"):
        assert time.time is not own
    assert time.time is own
    assert time.time() > 0


@pytest.fixture
def eager_collector() -> Iterator[list[str]]:
    """Garbage is collected at nearly every line, and each time a program looks at the clock."""
    seen: list[str] = []

    def look(phase: str, info: dict[str, int]) -> None:
        seen.append(f"{phase} {time.perf_counter()} {PERF_COUNTER()}")

    before = gc.get_threshold()
    gc.callbacks.append(look)
    gc.set_threshold(1)
    yield seen
    gc.set_threshold(*before)
    gc.callbacks.remove(look)


def test_what_the_collector_calls_is_not_held_against_a_program(
    eager_collector: list[str], tmp_path: Path
) -> None:
    """Hypothesis takes the time of every collection; a program may be explored beside it."""
    turn = (
        HEAD
        + """\
async def turn(zk, me, memory):
    await new_session()
    kept = [[str(number)] for number in range(100)]
    await zk.create(f"/{me}{len(kept)}")
    return Ended("done")
"""
    )
    module = module_of("program", turn, tmp_path)

    assert explore({"one": Program(module.turn, "one", None)}).holds
    assert eager_collector
    assert gc.isenabled()


@pytest.mark.parametrize("awaited", ["asyncio.sleep(1)", "asyncio.sleep(0)", "3"])
def test_awaiting_no_operation_is_named_with_the_line(awaited: str, tmp_path: Path) -> None:
    turn = f"""\
async def turn(zk, me, memory):
    await new_session()
    await {awaited}  # here
    return memory
"""
    error, line = refusal(turn, tmp_path)

    assert isinstance(error, Forbidden)
    assert "one awaits" in str(error)
    assert line in str(error)


@pytest.mark.parametrize(
    ("effect", "word", "why"),
    [
        ("zk.add_watch('/one')", "AddWatch", "persistent watches are not modelled"),
        (
            "zk.pipelined([zk.sync('/'), zk.add_watch('/one')])",
            "AddWatch",
            "persistent watches are not modelled",
        ),
        ("operations.Check('/one')", "Check", "it is a part of a multi, and nothing by itself"),
        ("operations.Create('/one', lifetime_ms=-1)", "Create", "the search has no server that"),
        (
            "zk.multi([zk.create('/a'), operations.Create('/one', lifetime_ms=5)])",
            "Multi",
            "the search has no server that",
        ),
        ("operations.CountDescendants('/')", "CountDescendants", "the search does not know"),
    ],
)
def test_what_no_search_can_answer_is_refused_with_the_line(
    effect: str, word: str, why: str, tmp_path: Path
) -> None:
    turn = f"""\
async def turn(zk, me, memory):
    await new_session()
    await {effect}  # here
    return memory
"""
    error, line = refusal(turn, tmp_path)

    assert f"one requests {word} at {line}, which cannot be explored: {why}" in str(error)


def test_a_turn_that_is_no_coroutine_is_refused() -> None:
    with pytest.raises(Forbidden, match="has to be a coroutine function"):
        explore({"one": Program(lambda zk, me, state: state, None, None)})  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", ["memory", "(memory,)"])
def test_a_program_that_asks_for_nothing_is_refused(ends: str, tmp_path: Path) -> None:
    turn = f"""\
async def turn(zk, me, memory):
    return {ends}  # here
"""
    error, _ = refusal(turn, tmp_path)

    assert "one runs for ever in turns without an effect" in str(error)


@pytest.mark.parametrize("error", ["ConnectionLoss", "SessionExpired"])
def test_a_program_that_fails_for_ever_is_refused_with_the_line(
    error: str, tmp_path: Path
) -> None:
    """Here either no caller catches the one error, or no caller catches the other."""
    caught = "ConnectionLoss" if error == "SessionExpired" else "NoNode"
    turn = f"""\
async def turn(zk, me, memory):
    if memory is None:
        await new_session()
        return "goes on"
    try:
        await zk.exists("/one")  # here
    except {caught}:
        await connected()
    await next_event()
    return memory
"""
    failure, line = refusal(turn, tmp_path, expire=1)

    assert isinstance(failure, NeverWaits)
    assert f"where every request fails at once with {error}, without waiting" in str(failure)
    assert line in str(failure)


def test_another_error_says_of_which_program_it_is(tmp_path: Path) -> None:
    text = f"{HEAD}async def turn(zk, me, memory):\n    await new_session()\n    1 / 0\n"
    module = module_of("program", text, tmp_path)

    with pytest.raises(ZeroDivisionError) as caught:
        explore({"one": Program(module.turn, None, "begin")})

    line = len(text.splitlines())
    assert caught.value.__notes__ == [
        f"in a turn of one, at {tmp_path / 'program.py'}:{line}",
        "begun with 'begin', after the answers (None,)",
    ]


# --- what is kept beside the memory ----------------------------------------------------


def test_a_global_that_grows_is_refused_with_the_line(tmp_path: Path) -> None:
    turn = """\
async def turn(zk, me, memory):
    await new_session()
    SEEN.append(me)
    await zk.create(f"/{len(SEEN)}")  # here
    return memory
"""
    error, line = refusal(turn, tmp_path)

    assert isinstance(error, NotDeterministic)
    assert f"one is not deterministic at {line}:" in str(error)
    assert "Create(path='/1'), and then to Create(path='/2')" in str(error)


def test_a_global_that_another_program_changes_is_refused_with_the_line(tmp_path: Path) -> None:
    """Run twice in a row it does the same; not after the other one was searched."""
    turn = """\
async def turn(zk, me, memory):
    await new_session()
    if me == "two":
        await zk.create("/two")
        SEEN.append(me)
    else:
        await zk.create("/second" if SEEN else "/first")  # here
    await next_event()
    return memory
"""
    error, line = refusal(turn, tmp_path)

    assert isinstance(error, NotDeterministic)
    assert line in str(error)
    assert "Create(path='/first'), and then to Create(path='/second')" in str(error)


def test_a_global_that_decides_how_a_turn_ends_is_refused(tmp_path: Path) -> None:
    turn = """\
async def turn(zk, me, memory):  # here
    global COUNT
    await sleep(1)
    COUNT += 1
    return COUNT
"""
    error, line = refusal(turn, tmp_path)

    assert isinstance(error, NotDeterministic)
    assert f"at its end, in the turn at {line}:" in str(error)
    assert "the end of the turn, with 1, and then to the end of the turn, with 2" in str(error)


@pytest.mark.parametrize("field", ["czxid", "mtime", "num_children", "cversion"])
def test_a_field_of_stat_that_is_no_part_of_identity_is_refused(
    field: str, tmp_path: Path
) -> None:
    turn = f"""\
async def turn(zk, me, memory):
    await new_session()
    seen = await zk.get("/")
    await zk.create(f"/{{seen.stat.{field}}}")  # here
    return memory
"""
    error, line = refusal(turn, tmp_path)

    assert f"Stat.{field} is read at {line};" in str(error)


def test_a_memory_that_hides_a_field_is_reported_with_both_histories(tmp_path: Path) -> None:
    turn = """\
@dataclass(frozen=True)
class Memory:
    step: int = 0
    hidden: str = field(default="", compare=False)


async def turn(zk, me, memory):  # here
    await new_session()
    if memory.step == 0:
        return Memory(1, "" if await zk.exists("/one") else "first")
    if memory.hidden:
        await zk.create("/one")
        return Memory(0)
    await zk.delete("/one")
    return Memory(0)
"""
    error, _ = refusal(turn, tmp_path, state="Memory()")

    assert isinstance(error, UnequalStates)
    assert "Memory(step=1, hidden='first') after the answers (None,)" in str(error)
    assert "Memory(step=1, hidden='') after the answers (None,)" in str(error)
    assert "Create(path='/one')" in str(error)
    assert "Delete(path='/one')" in str(error)


def test_a_memory_that_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    turn = """\
async def turn(zk, me, memory):
    await new_session()
    return ["one"]  # here
"""
    error, _ = refusal(turn, tmp_path)

    assert "the state of one, ['one'], cannot be compared" in str(error)


# --- the order of a set ----------------------------------------------------------------

ORDERED = {
    "a literal": "for name in {'x', 'y'}:",
    "a call": "for name in set(['x', 'y']):",
    "a name": "names = {'x', 'y'}; for name in names:",
    "a name given another": "names = {'x'}; others = names; for name in others:",
    "a global": "for name in NAMES:",
    "a comprehension": "for name in [one for one in NAMES]:",
    "a set comprehension": "for name in {one.lower() for one in ('x', 'y')}:",
    "a list of it": "for name in list(NAMES):",
    "its first": "for name in [next(iter(NAMES))]:",
    "numbered": "for _, name in enumerate(NAMES):",
    "joined": "for name in [','.join(NAMES)]:",
    "unpacked": "for name in [*NAMES]:",
    "taken out": "names = {'x', 'y'}; for name in [names.pop()]:",
    "assigned to several": "first, second = NAMES; for name in [first]:",
    "an operator": "for name in NAMES - {'x'}:",
    "keys without some": "for name in {'x': 1}.keys() - {'y'}:",
    "a method": "for name in NAMES.union(['z']):",
    "one of two": "for name in NAMES if me else ():",
    "an annotation": "names: set[str] = made(); for name in names:",
    "what a function gives": "for name in made():",
    "what a memory has": "for name in memory.names:",
    "in a helper": "for name in helped(memory):",
    "in a method": "for name in memory.listed():",
}

UNORDERED = {
    "sorted": "for name in sorted(NAMES):",
    "sorted by something": "for name in sorted((one for one in NAMES), key=len):",
    "membership": "for name in [one for one in ('x', 'y') if one in NAMES]:",
    "length": "for name in [str(len(NAMES))]:",
    "any and all": "for name in ['x'] if any(one == me for one in NAMES) else []:",
    "least": "for name in [min(one.lower() for one in NAMES)]:",
    "a set of a set": "for name in sorted({one.lower() for one in NAMES}):",
    "a list now": "names = {'x', 'y'}; names = sorted(names); for name in names:",
    "a dict": "for name in {'x': 1, 'y': 2}:",
    "its keys": "for name in {'x': 1}.keys():",
    "a tuple": "for name in memory.order:",
    "a local of a global's name": "NAMES = ('x', 'y'); for name in NAMES:",
}

AROUND = """\
@dataclass(frozen=True)
class Memory:
    names: frozenset[str] = frozenset({"x", "y"})
    order: tuple[str, ...] = ()

    def listed(self):
        METHOD


def made() -> set[str]:
    return {"x", "y"}


def helped(memory: Memory):
    HELPER


async def turn(zk, me, memory):
    await new_session()
    LOOP
        await zk.create(f"/{name}")
    await next_event()
    return memory


FIRST = Memory()
"""


def program_with(loop: str, folder: Path) -> tuple[Program, str]:
    """A program that goes through something, and the line in which it does."""
    method, helper = "return self.order", "return memory.order"
    if loop.endswith(".listed():"):
        method = "return list(self.names)  # here"
    elif "helped(" in loop:
        helper = "return list(memory.names)  # here"
    else:
        loop += "  # here"
    *before, last = loop.split("; ")
    lines = "\n    ".join([*before, last])
    text = HEAD + AROUND
    for word, instead in (("METHOD", method), ("HELPER", helper), ("LOOP", lines)):
        text = text.replace(word, instead)
    if loop == ORDERED["taken out"] + "  # here" or "first, second" in loop:
        marked = [at for at, line in enumerate(text.splitlines(), 1) if " = NAMES" in line]
    else:
        marked = []
    marked += [at for at, line in enumerate(text.splitlines(), 1) if "# here" in line]
    module = module_of("program", text, folder)
    return Program(module.turn, "one", module.FIRST), f"{folder / 'program.py'}:{marked[0]}"


@pytest.mark.parametrize("how", ORDERED)
def test_iterating_over_a_set_is_named_with_the_line(how: str, tmp_path: Path) -> None:
    program, line = program_with(ORDERED[how], tmp_path)

    with pytest.raises(IteratesOverSet, match=re.escape(f"one iterates over a set at {line},")):
        explore({"one": program})


@pytest.mark.parametrize("how", UNORDERED)
def test_what_has_no_order_to_lose_is_let_pass(how: str, tmp_path: Path) -> None:
    program, _ = program_with(UNORDERED[how], tmp_path)

    assert list(set_iterations(program)) == []


# --- the variants keep the promise -----------------------------------------------------

VARIANTS = ("documented", "documented_ceil", "kafka_07", "kafka_08", "hardened")
BOUNDS = Bounds({"expire": 1, "disconnect": 1}, 1)


SMALL = """\
name: small
about: A group that is small enough to be searched.
clusters:
  main: {{brokers: 1, layout: "{layout}", topics: {{clicks: {{{partitions}: 2}}}}}}
groups:
  billing: {{cluster: main, consumers: 2, streams: {{clicks: 1}}, variant: {variant}}}
settle: 10s
sometimes: [{{event: rebalance started}}]
"""


def small(variant: str, program: Program | None = None) -> Plan:
    """Two consumers, one broker, two partitions."""
    layout = "0.8" if variant == "kafka_08" else "0.7"
    partitions = "partitions" if layout == "0.8" else "partitions_per_broker"
    text = SMALL.format(layout=layout, partitions=partitions, variant=variant)
    return from_text("small.yaml", text).plan(variant, program=program)


def programs_of(plan: Plan) -> list[Program]:
    """Every program of a plan."""
    cluster, group = plan.clusters[0], plan.groups[0]
    return [
        *(
            consumer_program(cluster, group.name, consumer, life=1, new_id=False)
            for consumer in group.consumers
        ),
        *(broker_program(cluster, broker, {"clicks": 2}) for broker in cluster.brokers),
        administrator(Administrator("administrator", ())),
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_variant_goes_through_a_set(variant: str) -> None:
    for program in programs_of(small(variant)):
        assert list(set_iterations(program)) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_memories_of_a_variant_behave_alike(variant: str) -> None:
    """All turns of a search once more, begun with memories that are equal and not the same."""
    system = ClusterSystem(small(variant), BOUNDS)
    Search(system, SearchOptions(Limits(states=2_000), finds_all=True)).run()

    for member in system.members:
        compiled = member.moves.process.compiled
        assert len(compiled.nodes) > 3
        with watched(member.name):
            compiled.run_all_again(lambda state: pickle.loads(pickle.dumps(state)))


@pytest.mark.parametrize("most_waiting", [0, 3, 10_000])
def test_a_turn_that_waits_comes_to_what_a_turn_from_its_begin_comes_to(
    most_waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search of a program whose turns are run from their begin, twice, has the same graph."""
    monkeypatch.setattr(compile, "MOST_WAITING", most_waiting)
    graphs = []
    for is_foreign in (False, True):
        system = ClusterSystem(small("hardened"), BOUNDS)
        for member in system.members:
            member.moves.process.compiled._is_foreign = is_foreign
        Search(system, SearchOptions(Limits(states=2_000), finds_all=True)).run()
        compiled = [member.moves.process.compiled for member in system.members]
        graphs.append([(one.nodes, one._after) for one in compiled])
        assert any(one._waiting for one in compiled) == (not is_foreign and most_waiting > 0)

    assert graphs[0] == graphs[1]


def test_a_consumer_of_ones_own_that_reads_a_stat_is_refused(tmp_path: Path) -> None:
    text = HEAD + (
        "async def turn(zk, me, memory):\n"
        "    await new_session()\n"
        "    await zk.create(f'/{(await zk.exists(chr(47))).stat.czxid}')\n"
    )
    module = module_of("program", text, tmp_path)
    plan = small("hardened", Program(module.turn, None, "begin"))

    with pytest.raises(Forbidden, match=r"Stat\.czxid is read at .*program\.py:"):
        Search(ClusterSystem(plan, BOUNDS)).run()


def test_a_consumer_of_ones_own_that_goes_through_a_set_is_refused(tmp_path: Path) -> None:
    program, line = program_with(ORDERED["a list of it"], tmp_path)

    with pytest.raises(
        IteratesOverSet, match=re.escape(f"billing/0 iterates over a set at {line},")
    ):
        ClusterSystem(small("hardened", program), BOUNDS)


@pytest.mark.parametrize("made", ["partial(Turns().turn)", "Turns().turn", "Turns()", "wrapped"])
def test_a_turn_is_found_under_what_it_is_wrapped_in(made: str, tmp_path: Path) -> None:
    text = HEAD + (
        "from functools import partial, wraps\n\n\n"
        "class Turns:\n"
        "    async def turn(self, zk, me, memory):\n"
        "        return [name for name in NAMES]  # here\n\n"
        "    __call__ = turn\n\n\n"
        "@wraps(Turns.turn)\n"
        "async def wrapped(zk, me, memory):\n"
        "    return await Turns().turn(zk, me, memory)\n"
    )
    module = module_of("program", text, tmp_path)

    found = list(set_iterations(Program(eval(made, vars(module)), None, None)))

    assert [text.splitlines()[item.line - 1].endswith("# here") for item in found] == [True]


def test_an_equal_memory_that_behaves_otherwise_is_found_when_all_is_run_again() -> None:
    """The check of the variants above can fail."""

    async def turn(zk: Any, me: Any, state: Any) -> Any:
        await zk.create("/one" if state is FIRST else "/other")
        return state

    FIRST = ("begin", 1)  # noqa: N806
    compiled = CompiledProgram(Program(turn, None, FIRST), "one")
    compiled.root(FIRST)
    compiled.run_all_again()

    with pytest.raises(NotDeterministic):
        compiled.run_all_again(lambda state: pickle.loads(pickle.dumps(state)))
