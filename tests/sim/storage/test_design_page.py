"""The design page's statements, measured: each follows from a machine, and is in the docs."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests import HOME
from watchkeeper.experiment.apparatus.btree import BTree
from watchkeeper.experiment.apparatus.heap import (
    HOTSPOT_64,
    Collector,
    Heap,
    Layout,
    OutOfMemory,
    message_bytes,
)
from watchkeeper.experiment.apparatus.host import new_host
from watchkeeper.experiment.apparatus.rows import (
    Outcome,
    Row,
    about,
    at_least,
    at_most,
    shown,
    shown_said,
)
from watchkeeper.experiment.catalogue import EXPERIMENTS
from watchkeeper.experiment.clients import message_sets, sendfile
from watchkeeper.experiment.clients.heap_pauses import heap_pause
from watchkeeper.experiment.storage import (
    disks,
    flush_policies,
    heaps,
    lag,
    lock_contention,
    log_and_tree,
)
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.sim.disk.host_costs import GIB, MACHINES
from watchkeeper.sim.disk.models import DEVICES

PAGE = HOME / "docs" / "explanation" / "the-pagecache.md"
MACHINE = MACHINES["page"]
MB = 1_000_000


@cache
def outcome(name: str, machine: str = "page") -> Outcome:
    """What an experiment shows."""
    return EXPERIMENTS[name].measure(MACHINES[machine])


def value(name: str, what: str) -> float:
    """One number of an experiment on the page's machine."""
    (found,) = [row.value for row in outcome(name).rows if row.what == what]
    return found


# --- the page --------------------------------------------------------------------------


def section(name: str) -> dict[str, list[str]]:
    """The table of an experiment in the docs: what -> the cells after it."""
    text = PAGE.read_text()
    begin = text.index(f"\n## {name}\n")
    lines = text[begin : text.index("\n## ", begin + 1)].splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"
    ]
    return {row[0]: row[1:] for row in rows[2:]}


def number(cell: str) -> float:
    """The number in a cell."""
    return float(re.sub(r"[^0-9.e+-]", "", cell))


def differences(found: Outcome, table: dict[str, list[str]], machine: str) -> list[str]:
    """Where a table is not what was found; another zlib may compress by a per cent more."""
    wrong = [
        f"{what} is no row" for what in table if what not in {row.what for row in found.rows}
    ]
    for row in found.rows:
        if row.what not in table:
            wrong.append(f"{row.what} is missing")
            continue
        claimed, *values, unit, verdict = table[row.what]
        cell = values[list(MACHINES).index(machine)]
        is_page = machine == "page"
        verdicts = {None: "", True: "agrees", False: "**differs**"}
        if number(cell) != pytest.approx(number(shown(row.value)), rel=0.02, abs=0.01):
            wrong.append(f"{row.what}: {cell}, found {shown(row.value)}")
        elif (claimed, unit) != (shown_said(row.said), row.unit):
            wrong.append(f"{row.what}: the page's number or the unit")
        elif is_page and verdict != verdicts[row.agrees]:
            wrong.append(f"{row.what}: the verdict")
    return wrong


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_docs_say_what_is_found(name: str, machine: str) -> None:
    """Every number of every statement; made anew by python docs/generate.py."""
    assert differences(outcome(name, machine), section(name), machine) == []


def test_a_number_that_is_not_what_is_found_is_noticed() -> None:
    """The check above can fail: for a number, for a verdict, for a row that is not there."""
    table = section("sendfile")
    first, *_ = table
    wrong: list[dict[str, list[str]]] = [
        {**table, first: [table[first][0], "4.2", *table[first][2:]]},
        {**table, first: [*table[first][:-1], "**differs**"]},
        {what: cells for what, cells in table.items() if what != first},
        {**table, "one more": table[first]},
    ]
    found = [len(differences(outcome("sendfile"), field, "page")) for field in wrong]
    assert found == [1, 1, 1, 1]


def test_a_list_says_where_page_and_simulation_differ() -> None:
    """Every row that differs, and no other."""
    text = PAGE.read_text()
    listed = text[text.index("\n## Where the simulation") :].split("\n## ")[1]
    differing = [
        f"- **{name}**: {what}"
        for name in EXPERIMENTS
        for what, cells in section(name).items()
        if cells[-1] == "**differs**"
    ]
    lines = [line for line in listed.splitlines() if line.startswith("- ")]
    assert len(lines) == len(differing) > 0
    assert all(map(str.startswith, lines, differing))


# --- numbers follow from the machine ---------------------------------------------------


COUNTED = {"balancing", "repeats"}
"""Experiments that count messages in groups, as fast as they may be stored."""


@pytest.mark.parametrize("name", sorted(EXPERIMENTS.keys() - COUNTED))
def test_another_machine_gives_other_numbers(name: str) -> None:
    """No outcome is written down: in every experiment something depends on the machine."""
    assert any(page != modern for _, page, modern, *_ in section(name).values())


def faster(**changes: Any) -> Any:
    """The page's machine with some figures changed."""
    return replace(MACHINE, **changes)


def test_a_faster_disk_writes_faster_in_line_and_not_at_random() -> None:
    """An arm that turns as before is no faster at random, however dense the platters are."""
    device = replace(DEVICES["raid-5"], write_bytes_per_s=120 * MB, read_bytes_per_s=120 * MB)
    machine = faster(device=device)

    assert disks.linear_rate(machine) > 1.7 * disks.linear_rate(MACHINE)
    assert disks.random_rate(machine, 4096) < 1.2 * disks.random_rate(MACHINE, 4096)


def test_more_disks_write_faster_in_line_and_not_at_random() -> None:
    """Every random write still takes two seeks and a rotation."""
    machine = faster(device=replace(DEVICES["raid-5"], members=11))

    assert disks.linear_rate(machine) > 1.6 * disks.linear_rate(MACHINE)
    assert disks.random_rate(machine, 4096) < 1.3 * disks.random_rate(MACHINE, 4096)


def test_random_writes_of_the_pages_array_are_those_of_small_messages() -> None:
    """The page's 50 kB/s come about with writes of about 1 KiB, and its 6,000 times."""
    assert value("linear-writes", "at random, 1 KiB at a time") == pytest.approx(50, rel=0.2)
    assert value("linear-writes", "in line against 1 KiB at random") == pytest.approx(
        6000, rel=0.2
    )
    assert any("6,000 times" in remark for remark in outcome("linear-writes").remarks)


def test_slow_memory_loses_against_a_disk_and_fast_memory_does_not() -> None:
    """Whether a disk in line beats memory at random is a matter of both."""
    rows = {row.what: row for row in disks.reading(faster(access_ns=5)).rows}
    assert rows["disk in line against memory at random"].agrees is False


def test_pauses_grow_with_what_lives_and_shrink_with_more_threads() -> None:
    """Twice the heap, twice the pause; four threads, a quarter."""
    serial, four = Collector(), Collector(threads=4)
    pause = serial.pause_us(10**7, GIB, MACHINE)

    assert serial.pause_us(2 * 10**7, 2 * GIB, MACHINE) == pytest.approx(2 * pause, rel=0.001)
    assert four.pause_us(10**7, GIB, MACHINE) == pytest.approx(pause / 4, rel=0.001)
    assert heaps.longest_silence_s(MACHINE, 2 * GIB) > 1.9 * heaps.longest_silence_s(MACHINE, GIB)


def test_compressed_references_make_a_heap_smaller() -> None:
    """What objects add follows from the layout."""
    small = Layout(header_bytes=12, array_header_bytes=16, reference_bytes=4)

    assert message_bytes(200, small) < message_bytes(200, HOTSPOT_64)
    assert message_bytes(8, HOTSPOT_64) - message_bytes(7, HOTSPOT_64) in (0, 8)
    assert message_bytes(100) == 16 + 3 * 8 + 8 + 24 + 40 + 56 + 10 + 128


def test_a_heap_that_is_full_of_what_lives_takes_nothing() -> None:
    """Not after a collection either; what is forgotten makes room."""
    host = new_host(MACHINE)
    heap = Heap(host, host.process(), 1_000_000)
    count = 1_000_000 // message_bytes(200)
    heap.put(count, 200)
    with pytest.raises(OutOfMemory, match="do not fit into a heap of 1,000,000"):
        heap.put(1, 200)
    heap.drop(10, 200)
    heap.put(10, 200)
    assert len(heap.pauses_us) == 2


@pytest.mark.parametrize(("gib", "verdict"), [(1, Verdict.HOLDS), (4, Verdict.VIOLATED)])
def test_a_heap_makes_a_zombie_when_its_pause_outlives_a_session(
    gib: int, verdict: Verdict
) -> None:
    """A group whose member stands still for as long as its heap does, with a timeout of 6 s."""
    found = heap_pause(MACHINE, gib)

    assert (found.pause_s > heaps.SESSION_TIMEOUT_S) == (verdict is Verdict.VIOLATED)
    assert found.verdict is verdict


def test_a_lock_makes_readers_block() -> None:
    """Without one, no process waits for anybody."""
    alone = lock_contention.append_us(MACHINE, 0)

    assert lock_contention.append_us(MACHINE, 4) == pytest.approx(alone, rel=0.05)
    assert lock_contention.append_us(MACHINE, 4, has_lock=True) > 100 * alone


def test_a_log_is_as_fast_when_it_is_large_and_a_tree_is_not() -> None:
    """Pages that a tree touches grow with the logarithm, pages from the disk with its size."""
    small = replace(MACHINE, memory_bytes=GIB)
    us, levels, misses = log_and_tree.tree_us(small, 10**9, is_random=True)

    assert log_and_tree.working_rate(MACHINE, 200) == log_and_tree.working_rate(MACHINE, 0)
    assert levels == 5
    assert misses > 1
    assert us > 20 * log_and_tree.log_us(small, 10**9)


def test_sendfile_is_faster_only_by_what_it_does_not_copy() -> None:
    """Where copying costs nothing, so does the way through the program."""
    free = faster(
        network_bytes_per_s=sendfile.NO_LIMIT,
        copy_bytes_per_s=10**15,
        bus_bytes_per_s=10**15,
        page_ns=0,
        hop_us=0,
    )
    sent, copied = (sendfile.one_core_rate(free, sends=sends) for sends in (True, False))
    assert 0.9 < copied / sent * 2 < 1.1  # two calls and not one


def test_consumers_share_the_network() -> None:
    """A network of half the size carries half as many at the same rate."""
    half = faster(network_bytes_per_s=MACHINE.network_bytes_per_s // 2)
    for machine in (MACHINE, half):
        share, from_disk, _ = sendfile.consumed(machine, 50, sends=True)
        assert share > 95
        assert from_disk == 0


def test_sets_make_up_for_the_way_there_and_back() -> None:
    """On a network without distance they make up for less."""
    near = faster(hop_us=0)
    ratios = [
        message_sets.produced(machine, 200) / message_sets.produced(machine, 1)
        for machine in (MACHINE, near)
    ]
    assert ratios[0] > 50
    assert ratios[1] < ratios[0] / 2


def test_what_is_compressed_are_real_events() -> None:
    """Each another one, of the same kind; all of them can be had again."""
    chance = new_host(MACHINE).kernel.streams("events")
    events = [message_sets.activity(number, chance) for number in range(200)]

    assert len(set(events)) == 200
    assert {event[:22] for event in events} == {b'{"type": "page_view", '}
    assert (
        message_sets.compressed_bytes(events, 200) < message_sets.compressed_bytes(events, 1) / 4
    )


@pytest.mark.parametrize("policy", flush_policies.POLICIES[1:3], ids=lambda policy: policy.name)
def test_no_crash_takes_more_than_the_policy_says(policy: flush_policies.Policy) -> None:
    """Nor less than nothing; with other seeds than those of the page."""
    assert policy.risks is not None
    lost = [flush_policies.lost_messages(MACHINE, policy, seed) for seed in range(100, 104)]
    assert all(0 <= count <= policy.risks for count in lost)
    assert any(lost)


def test_who_is_near_the_end_reads_no_disk() -> None:
    """And who is further behind than the memory reads all of it from there."""
    small = replace(MACHINE, memory_bytes=lag.MEMORY_BYTES)

    assert lag.Behind(small, 25).from_disk == 0
    assert lag.Behind(small, 150).from_disk == pytest.approx(1, abs=0.05)


# --- the B-tree against a real one -----------------------------------------------------


class Leaves:
    """A real B-tree with its keys: lists of keys, split in the middle when they are full."""

    def __init__(self, most: int, fanout: int) -> None:
        self.most = most
        self.fanout = fanout
        self.levels: list[list[list[int]]] = [[[]]]
        """From the leaves to the root: of each node the keys, or the least keys below."""

    def insert(self, key: int) -> None:
        """Insert a key, and split what is too full, up to the root."""
        from bisect import bisect_right, insort

        nodes = self.levels[0]
        at = max(bisect_right([node[0] if node else -1 for node in nodes], key) - 1, 0)
        insort(nodes[at], key)
        if len(nodes[at]) > self.most:
            half = len(nodes[at]) // 2
            nodes[at : at + 1] = [nodes[at][:half], nodes[at][half:]]

    def depth(self) -> int:
        """How many levels there are, with inner nodes as full as leaves are."""
        filled = sum(map(len, self.levels[0])) / len(self.levels[0]) / self.most
        count, levels = len(self.levels[0]), 1
        while count > 1:
            count = -(-count // max(int(self.fanout * filled), 2))
            levels += 1
        return levels


def test_a_real_tree_has_as_many_pages_and_levels() -> None:
    """Keys inserted in random order fill its leaves by as much as is assumed."""
    real = Leaves(most=20, fanout=20)
    chance = new_host(MACHINE).kernel.streams("keys")
    for _ in range(6_000):
        real.insert(chance.below(10**12))
    tree = BTree("tree", 6_000, entry_bytes=4096 // 20, key_bytes=4096 // 20)

    assert tree.levels[-1] == pytest.approx(len(real.levels[0]), rel=0.12)
    assert len(tree.levels) == real.depth()


@pytest.mark.parametrize("entries", [1, 50, 10**4, 10**6, 10**9])
def test_a_search_goes_through_one_page_of_each_level(entries: int) -> None:
    """From the root, and neighbours share their way but for the last."""
    tree = BTree("tree", entries, entry_bytes=40, key_bytes=24)
    ways = [tree.path_to(place) for place in (0, entries // 2, entries - 1)]
    ends = [sum(tree.levels[: level + 1]) for level in range(len(tree.levels))]

    assert {way[0] for way in ways} == {0}
    for way in ways:
        assert all(
            end - size <= page < end
            for page, end, size in zip(way, ends, tree.levels, strict=True)
        )
    assert ways[-1][-1] == tree.pages - 1


# --- rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page_value", "agreeing", "differing"),
    [
        (about(300), (200.1, 300, 449), (199, 451)),
        (at_least(2), (2, 3), (1.99,)),
        (at_most(0), (0,), (0.1,)),
    ],
)
def test_what_agrees_and_what_differs(
    page_value: Any, agreeing: tuple[float, ...], differing: tuple[float, ...]
) -> None:
    """By half at most, where the page says about so much."""
    assert all(Row("it", value, "", page_value).agrees is True for value in agreeing)
    assert all(Row("it", value, "", page_value).agrees is False for value in differing)
    assert Row("it", 1, "").agrees is None


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (0, "0"),
        (0.04567, "0.0457"),
        (1, "1"),
        (45.67, "45.7"),
        (999.6, "1,000"),
        (12345, "12,300"),
    ],
)
def test_numbers_have_three_digits(value: float, cell: str) -> None:
    """Whatever their size."""
    assert shown(value) == cell
