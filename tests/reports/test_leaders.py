"""The picture of leaders, and the facts that it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sim.test_replication import LOAD, cluster, moved
from watchkeeper import Result, simulate
from watchkeeper.model.actor.effects import Partition
from watchkeeper.reports import pictures_of, write_leaders_png
from watchkeeper.reports.facts.control_plane.leaders import NONE, leaders
from watchkeeper.reports.facts.control_plane.replica_logs import Watermark, leader_logs, log_ends
from watchkeeper.reports.figure.page_size import MARGIN, WIDTH
from watchkeeper.reports.figure.panels import Panel
from watchkeeper.reports.leaders import png
from watchkeeper.reports.leaders.png import MOST_LANES
from watchkeeper.reports.leaders.watermarks import staircase, thinned


def summary(result: Result) -> str:
    """What the heading of the picture says."""
    return png.summary(leaders(result.trace), leader_logs(result.trace))


def signs(result: Result) -> list[str]:
    """What the legend explains."""
    return png.signs_of(leaders(result.trace), leader_logs(result.trace))


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
    assert "1 election took a replica outside of the ISR" in summary(unclean)


def test_a_partition_without_a_leader() -> None:
    timeline = [{"at": "5s", "crash": "broker/1"}, {"at": "10s", "crash": "broker/0"}]
    result = simulate(cluster(*timeline), variant="hardened", seed=1)
    [one] = leaders(result.trace).partitions
    assert one.led[-1].what == NONE
    assert "A partition had no leader 1 time." in summary(result)
    assert signs(result) == [png.NO_LEADER]


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
    assert "5 partitions more are not drawn" in summary(result)
    write_leaders_png(result.trace, tmp_path)


def test_a_move_is_seen(tmp_path: Path) -> None:
    result = simulate(cluster(LOAD, moved("6s", [2, 3]), brokers=4), variant="hardened", seed=1)
    [one] = leaders(result.trace).partitions
    assert one.isrs[-1].isr == (2, 3)
    assert any(len(each.isr) == 4 for each in one.isrs)
    write_leaders_png(result.trace, tmp_path)


# --- the size of the ISR -------------------------------------------------------------------


def too_small(result: Result) -> list[tuple[str, float, float]]:
    """When the ISR of the only partition was too small, in seconds."""
    [one] = leaders(result.trace).partitions
    return [
        (span.what, round(span.start_us / 1e6, 1), round(span.end_us / 1e6, 1))
        for span in one.too_small
    ]


def test_an_isr_below_the_minimum_of_the_brokers() -> None:
    timeline = [{"at": "5s", "crash": "broker/1"}, {"at": "9s", "start": "broker/1"}]
    needed = cluster(LOAD, *timeline, min_insync_replicas=2)
    result = simulate(needed, variant="hardened", seed=1)
    [(number, start, end)] = too_small(result)
    assert number == "2"
    assert 5 < start < 7 < 9 <= end < 10
    assert png.SMALL in signs(result)
    assert "An ISR was smaller than min.insync.replicas 1 time." in summary(result)

    enough = simulate(cluster(LOAD, *timeline), variant="hardened", seed=1)
    assert too_small(enough) == []
    assert png.SMALL not in signs(enough)


def test_an_isr_below_the_minimum_of_the_topic() -> None:
    """The setting of a topic counts from when its leader has read it."""
    timeline = [{"at": "4s", "crash": "broker/1"}, *settings(8, "2"), *settings(10, "1")]
    result = simulate(cluster(LOAD, *timeline), variant="hardened", seed=1)
    [(number, start, end)] = too_small(result)
    assert (number, start, end) == ("2", 8.1, 10.1)


def settings(at_s: int, needed: str) -> list[dict[str, Any]]:
    """Entries that change `min.insync.replicas` of the topic, and tell brokers."""
    config = json.dumps({"version": 1, "config": {"min.insync.replicas": needed}})
    change = f"/config/changes/config_change_{at_s:010}"
    return [
        {"at": f"{at_s}s", "write_znode": "/config/topics/clicks", "data": config},
        {"at": f"{at_s}100ms", "write_znode": change, "data": '"clicks"'},
    ]


def test_a_lane_is_full_where_every_assigned_replica_is_in_sync() -> None:
    """A partition that moves has four replicas for a while, and two before and after."""
    result = simulate(cluster(LOAD, moved("6s", [2, 3]), brokers=4), variant="hardened", seed=1)
    [one] = leaders(result.trace).partitions
    assert [each.isr for each in one.assigned] == [(0, 1), (2, 3, 0, 1), (2, 3)]
    begun = one.assigned[1].span.start_us
    assert (one.size_at(begun - 1), one.size_at(begun), one.size_at(result.trace.end_us - 1)) == (
        2,
        4,
        2,
    )


# --- high watermarks -----------------------------------------------------------------------


def test_the_high_watermark_falls_where_an_unclean_leader_begins(unclean: Result) -> None:
    [log] = leader_logs(unclean.trace).values()
    [fallen] = log.fallen_us
    before = [one for one in log.watermarks if one.t_us < fallen]
    after = [one for one in log.watermarks if one.t_us >= fallen]
    assert after[0].high_watermark < before[-1].high_watermark
    assert all(one.high_watermark <= one.end for one in log.watermarks)
    assert log.end == before[-1].end
    assert log.leads[0] == "broker/1"
    assert png.FALLEN in signs(unclean)
    assert "A new leader began with a lower high watermark 1 time." in summary(unclean)


def test_the_log_of_a_leader_is_ahead_of_its_high_watermark() -> None:
    """A follower stands still, so that nothing is committed until it has left the ISR."""
    load = {**LOAD, "acks": "leader"}
    timeline = [load, {"at": "3s", "pause": "broker/1", "for": "4s"}]
    result = simulate(cluster(*timeline), variant="hardened", seed=1)
    [log] = leader_logs(result.trace).values()
    assert max(one.end - one.high_watermark for one in log.watermarks) > 10
    assert log.watermarks[-1].end == log.watermarks[-1].high_watermark


def test_the_log_ends_of_replicas() -> None:
    """Old replicas are deleted, and new ones begin at zero and catch up."""
    result = simulate(cluster(LOAD, moved("6s", [2, 3]), brokers=4), variant="hardened", seed=1)
    [ends] = log_ends(result.trace).values()
    [log] = leader_logs(result.trace).values()
    last = [ends[number][-1].end for number in range(4)]
    assert last == [None, None, log.end, log.end]
    assert ends[2][0].end == 0
    assert ends[2][0].t_us > 6_000_000


def test_without_messages_there_is_no_strip() -> None:
    result = simulate(cluster(), variant="hardened", seed=1)
    found, logs = leaders(result.trace), leader_logs(result.trace)
    assert png.strip_height(found.partitions, logs) == 0
    assert png.MARK not in signs(result)


def test_strips_are_low_where_there_are_many() -> None:
    result = simulate(cluster(LOAD, partitions=13), variant="hardened", seed=1)
    found, logs = leaders(result.trace).partitions, leader_logs(result.trace)
    assert png.strip_height(found, logs) == png.LOW_STRIP
    assert png.strip_height(found[:12], logs) == png.HIGH_STRIP


def test_a_staircase_keeps_each_value_until_the_next() -> None:
    panel = Panel(1.0, 3.0, 0, 200)
    assert staircase(panel, [(0, 0), (100, 5)], (2.0, 1.0, 10)) == [
        *((1.0, 2.0), (2.0, 2.0)),
        *((2.0, 1.5), (3.0, 1.5)),
    ]


def test_only_the_last_watermark_of_a_pixel_is_drawn() -> None:
    panel = Panel(0.0, 1.0, 0, 16_000)
    watermarks = [Watermark(at, at, at) for at in range(0, 16_000, 10)]
    drawn = thinned(panel, watermarks)
    assert len(drawn) == 160
    assert drawn[0].t_us == 90


def test_a_long_legend_has_several_rows() -> None:
    places = png.legend_places([f"broker {number}" for number in range(30)])
    assert {row for _, _, row in places} == {0, 1, 2, 3}
    assert all(MARGIN <= x < WIDTH - MARGIN for _, x, _ in places)
