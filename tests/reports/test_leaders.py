"""The picture of leaders, and the facts that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.test_replication import LOAD, cluster, moved
from watchkeeper import Result, simulate
from watchkeeper.model.actor.effects import Partition
from watchkeeper.reports import pictures_of, write_leaders_png
from watchkeeper.reports.facts.leaders import NONE, leaders
from watchkeeper.reports.leaders.png import MOST_LANES, summary


@pytest.fixture(scope="module")
def unclean() -> Result:
    """A run in which the leader dies alone, and a replica that is behind leads next."""
    timeline = [
        LOAD,
        {"at": "5s", "crash": "broker/1"},
        {"at": "10s", "crash": "broker/0"},
        {"at": "13s", "start": "broker/1"},
    ]
    return simulate(cluster(*timeline, unclean=True), variant="kafka_08", seed=1)


def test_the_leaders_of_a_partition(unclean: Result) -> None:
    found = leaders(unclean.trace)
    [one] = found.partitions
    assert one.partition == Partition("clicks", "0")
    assert [span.what for span in one.led] == ["broker 0", NONE, "broker 1"]
    assert [each.isr for each in one.isrs] == [(0, 1), (0,), (), (1,)]
    assert len(one.unclean_us) == 1
    assert one.led[0].end_us == one.led[1].start_us
    assert [epoch for _, epoch in one.epochs] == sorted({epoch for _, epoch in one.epochs})
    assert {span.what for span in found.reigns} == {"broker 2"}
    assert "1 election took a replica outside of the ISR" in summary(found)


def test_a_partition_without_a_leader() -> None:
    timeline = [{"at": "5s", "crash": "broker/1"}, {"at": "10s", "crash": "broker/0"}]
    found = leaders(simulate(cluster(*timeline), variant="hardened", seed=1).trace)
    [one] = found.partitions
    assert one.led[-1].what == NONE
    assert "A partition had no leader 1 time." in summary(found)


def test_the_picture_is_drawn_where_there_is_a_controller(
    unclean: Result, tmp_path: Path
) -> None:
    assert pictures_of(unclean.trace) == [
        "spacetime.html",
        "leaders.png",
        "messages.png",
        "messages.html",
    ]
    first = (tmp_path / write_leaders_png(unclean.trace, tmp_path)).read_bytes()
    second = (tmp_path / write_leaders_png(unclean.trace, tmp_path)).read_bytes()
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_many_partitions_are_cut_and_the_heading_says_so(tmp_path: Path) -> None:
    result = simulate(cluster(partitions=MOST_LANES + 5), variant="hardened", seed=1)
    assert "5 partitions more are not drawn" in summary(leaders(result.trace))
    write_leaders_png(result.trace, tmp_path)


def test_a_move_is_seen(tmp_path: Path) -> None:
    result = simulate(cluster(LOAD, moved("6s", [2, 3]), brokers=4), variant="hardened", seed=1)
    [one] = leaders(result.trace).partitions
    assert one.isrs[-1].isr == (2, 3)
    assert any(len(each.isr) == 4 for each in one.isrs)
    write_leaders_png(result.trace, tmp_path)
