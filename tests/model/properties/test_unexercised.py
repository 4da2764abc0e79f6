"""What a run did not show is unknown; what befell another cluster is not held against a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.model.actor.effects import new_session, next_event, sleep
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.program_errors import ProgramLoops
from watchkeeper.model.judgement.judge import PROPERTIES
from watchkeeper.model.properties.ownership import OWN_NODES
from watchkeeper.model.properties.progress import PROGRESS, WORK
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind

Fields = Mapping[str, Any]

CLUSTER: Fields = {"brokers": 2, "topics": {"clicks": {"partitions_per_broker": 2}}}
GROUP: Fields = {"consumers": 2, "streams": {"clicks": 1}}
LOAD = {"at": "0s", "produce": "clicks", "rate": "100/s"}


def run(
    group: Fields = GROUP,
    cluster: Fields = CLUSTER,
    timeline: list[Fields] | None = None,
    **more: Any,
) -> Result:
    """Run one small cluster with one group."""
    return simulate(
        {
            "name": "nothing",
            "about": "little happens",
            "clusters": {"main": cluster},
            "groups": {"group": group},
            "timeline": [LOAD] if timeline is None else timeline,
            "settle": "15s",
        },
        **more,
    )


def two_clusters(second: Fields, topic: str, *timeline: Fields) -> Result:
    """Run two clusters, each with a group of its own."""
    return simulate(
        {
            "name": "two",
            "about": "two clusters",
            "clusters": {"main": CLUSTER, "other": second},
            "groups": {
                "a": {**GROUP, "cluster": "main"},
                "b": {"cluster": "other", "consumers": 2, "streams": {topic: 1}},
            },
            "timeline": [LOAD, *timeline],
            "settle": "20s",
        }
    )


# --- nothing to see --------------------------------------------------------------------

NO_FETCH: dict[str, tuple[Fields, Fields]] = {
    "no consumers": ({**GROUP, "consumers": 0}, CLUSTER),
    "no member starts": ({**GROUP, "consumers": [{"starts": "never"}] * 2}, CLUSTER),
    "a filter that allows nothing": ({"consumers": 2, "filter": {"white_list": "zzz"}}, CLUSTER),
    "no broker starts": (GROUP, {**CLUSTER, "brokers": [{"id": 0, "starts": "never"}]}),
}


@pytest.mark.parametrize("case", NO_FETCH)
def test_a_run_in_which_no_member_fetched_is_unknown(case: str) -> None:
    """Nothing was wrong, since there was nothing: that is not `holds`."""
    group, cluster = NO_FETCH[case]

    result = run(group, cluster)

    assert result.verdict is Verdict.UNKNOWN
    assert result.exit_code == 2
    for name in ("single ownership", "truthful registry", "full cover"):
        assert result.judgement.finding(name).verdict is Verdict.UNKNOWN


def test_consumers_that_give_up_at_once_have_shown_nothing() -> None:
    """A program that ends before it has done anything passes no property."""

    async def turn(zk: ZooKeeper, me: Any, state: Any) -> Any:
        return Ended("gave up", failed=True)

    assert run(consumer=Program(turn, None, None)).verdict is Verdict.UNKNOWN


def test_messages_of_a_topic_that_no_member_serves_are_no_effect() -> None:
    """A load is real when it is written to something."""
    load = {"at": "1s", "produce": "later", "rate": "5/s"}
    born = {"at": "9s", "create_topic": "later", "partitions_per_broker": 1}
    dead = {"at": "2s", "delete_topic": "clicks"}

    gone = run(timeline=[dead, {"at": "5s", "produce": "clicks", "rate": "5/s"}])
    waited = run(timeline=[load, born])

    assert [effect.is_real for effect in gone.effects] == [True, False]
    assert next(effect.counts for effect in waited.effects) == {"messages a second": 5}


def test_a_topic_is_deleted_once() -> None:
    """Who deletes it again deletes nothing."""
    again = [{"at": f"{at}s", "delete_topic": "clicks"} for at in (5, 8)]

    for layout in ("0.7", "0.8"):
        result = run(cluster={**CLUSTER, "layout": layout}, timeline=again)
        assert [effect.is_real for effect in result.effects] == [True, False]


# --- two clusters ----------------------------------------------------------------------


def test_sessions_of_two_ensembles_are_not_mixed_up() -> None:
    """A member of one cluster leaves; the group of the other never stirs."""
    second = {"brokers": 2, "topics": {"views": {"partitions_per_broker": 2}}}

    for fault in ({"leave": "b/0"}, {"crash": "other:broker/0"}):
        result = two_clusters(second, "views", {"at": "5s", **fault})
        assert result.holds, result
        opened = [event.session for event in result.trace.of_kind(EventKind.SESSION_OPENED)]
        assert len(set(opened)) == len(opened)


def test_topics_of_one_name_in_two_clusters_are_two_topics() -> None:
    """What one cluster serves no member of the other has to fetch."""
    second = {"brokers": 1, "topics": {"clicks": {"partitions_per_broker": 1}}}

    assert two_clusters(second, "clicks").holds


# --- moments and loops -----------------------------------------------------------------


def test_the_strict_form_names_the_first_moment() -> None:
    """The zombie fetched beside the new owner before its session was alive again."""
    result = simulate("gc-pause-zombie", variant="kafka_08")

    strict = result.judgement.finding("strict single ownership")
    single = result.judgement.finding("single ownership")
    assert strict.at_us is not None
    assert single.at_us is not None
    assert strict.at_us < single.at_us
    assert "processes run" in strict.evidence


def test_a_group_that_asks_without_end_makes_no_progress() -> None:
    """Its own requests do not buy it time, and it reads more than there is to read."""

    async def turn(zk: ZooKeeper, me: Any, state: Any) -> Any:
        await new_session()
        while True:
            await zk.exists("/brokers/ids")

    assert set(run(consumer=Program(turn, None, None)).violated) == {"progress", "work bound"}


@pytest.mark.parametrize("loop", ["turns", "sleeps", "notes"])
def test_a_program_that_lets_no_time_pass_is_stopped(loop: str) -> None:
    """It would never end; the error names the process."""

    async def turn(zk: ZooKeeper, me: Any, state: Any) -> Any:
        if loop == "turns":
            return 1
        await new_session()
        while True:
            await (sleep(0) if loop == "sleeps" else next_event(0))

    with pytest.raises(ProgramLoops, match=r"group/0 has gone on for 100,000 steps"):
        run(consumer=Program(turn, None, None))


@pytest.mark.parametrize("ask", [sleep(-5), next_event(-5)], ids=["sleep", "next_note"])
def test_no_wait_is_for_less_than_no_time(ask: Any) -> None:
    """A negative time is an error of the program, and the process is named."""

    async def turn(zk: ZooKeeper, me: Any, state: Any) -> Any:
        await ask

    with pytest.raises(ValueError, match="cannot") as raised:
        run(consumer=Program(turn, None, None))
    assert raised.value.__notes__[0] == "in group/0 at 1.000000 s"


# --- one notion of exercise --------------------------------------------------------------


def test_what_any_run_exercises_names_nothing_that_it_takes() -> None:
    assert {claim.name for claim in PROPERTIES if not claim.exercise} == {
        PROGRESS.name,
        WORK.name,
    }


@pytest.mark.parametrize("load", [[], [LOAD]], ids=["silent", "loaded"])
@pytest.mark.parametrize("consumers", [1, 3])
def test_a_property_holds_only_where_it_was_exercised(consumers: int, load: list[Fields]) -> None:
    result = run({**GROUP, "consumers": consumers}, timeline=load)

    for finding in result.findings:
        if finding.exercised is not None:
            is_known = finding.verdict is not Verdict.UNKNOWN
            assert is_known == (finding.exercised > 0), finding


def test_deletions_are_counted_and_a_run_without_one_is_judged_without_them() -> None:
    """A member alone deletes no ephemeral; one that leaves the group releases its claims."""
    alone = run({**GROUP, "consumers": 1}).judgement.finding(OWN_NODES.name)
    joined = run(
        {"consumers": [{"id": "a"}, {"id": "b", "starts": "4s"}], "streams": {"clicks": 1}}
    ).judgement.finding(OWN_NODES.name)

    assert (alone.verdict, alone.exercised, alone.counts) == (Verdict.UNKNOWN, 0, False)
    assert alone.evidence == "not exercised: it takes a request that deletes an ephemeral znode"
    assert joined.verdict is Verdict.HOLDS
    assert joined.exercised
