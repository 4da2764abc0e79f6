"""When the simulated ensemble ends a session, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.zookeeper.programs import (
    LATENESS_US,
    MS,
    SERVERS,
    TRAVEL_US,
    Run,
    insist,
    notifications,
    play,
    say,
)
from watchkeeper.model.actor.effects import close_session, new_session, next_event, sleep
from watchkeeper.model.actor.errors import ConnectionLoss
from watchkeeper.model.actor.events import SessionEvent
from watchkeeper.model.actor.operations import AddWatch, ZooKeeper
from watchkeeper.model.trace.kinds import EventKind

AWAKE = [{"delay": "clients/0", "by": "1us", "at": "0s", "for": "60s"}]
"""A fault that changes nothing, but makes the simulation send every ping."""

pings = pytest.mark.parametrize("awake", [[], AWAKE], ids=["counted", "sent"])


async def idles(zk: ZooKeeper) -> None:
    """Hold an ephemeral and say nothing more."""
    await new_session()
    await zk.create("/e-", ephemeral=True, sequential=True)
    while True:
        await next_event()


async def works(zk: ZooKeeper) -> None:
    """Hold an ephemeral and look at it all the time."""
    await new_session()
    path = await zk.create("/e-", ephemeral=True, sequential=True)
    while True:
        await sleep(50)
        await insist(zk.get(path))


async def only_stands_by(zk: ZooKeeper) -> None:
    """Do not even connect; a client for a fault to strike without effect."""
    await sleep(1_000_000)


def expiries(run: Run) -> dict[int, int]:
    """Session -> the moment when the ensemble ended it."""
    return {event.session: event.t_us for event in run.events(EventKind.SESSION_EXPIRED)}


# --- when ------------------------------------------------------------------------------

TICKS = [("200ms", 400), ("200ms", 700), ("500ms", 1000), ("500ms", 1700), ("1s", 3500)]


@pytest.mark.parametrize(("tick", "timeout_ms"), TICKS)
@pings
def test_a_session_ends_within_a_tick_after_its_timeout(
    tick: str, timeout_ms: int, awake: list[Any]
) -> None:
    """It ends later than the timeout after the last request, and not by more than a tick."""
    tick_us = {"200ms": 200, "500ms": 500, "1s": 1000}[tick] * MS
    timeout_us = timeout_ms * MS
    took = []
    for seed in range(30):
        crash = {"crash": "clients/1", "at": f"{3000 + 37 * seed}ms"}
        run = play(
            only_stands_by,
            works,
            seed=seed,
            tick=tick,
            timeout_ms=timeout_ms,
            timeline=[crash, *awake],
            settle="6s",
        )
        last_us = run.events(EventKind.REQUEST, node="clients/1")[-1].t_us
        shift_us = 0 if run.server_of(1) == run.first_leader else tick_us // 2
        (ended_us,) = expiries(run).values()
        assert timeout_us < ended_us - last_us
        assert ended_us - last_us <= timeout_us + tick_us + shift_us + LATENESS_US + TRAVEL_US
        assert 2 * MS <= ended_us % tick_us <= LATENESS_US + TRAVEL_US, "just after a tick"
        took.append(ended_us - last_us - timeout_us)

    assert min(took) < tick_us // 2 < max(took), "it is not always the same"


@pings
def test_an_idle_client_has_given_a_sign_of_life_not_long_ago(awake: list[Any]) -> None:
    """A client that asks nothing pings: it ends as if its last request were a ping."""
    timeout_us, tick_us = 3000 * MS, 500 * MS
    for seed in range(30):
        crash_us = (4000 + 77 * seed) * MS
        crash = {"crash": "clients/1", "at": f"{crash_us}us"}
        run = play(
            only_stands_by,
            idles,
            seed=seed,
            timeout_ms=3000,
            timeline=[crash, *awake],
            settle="8s",
        )
        (ended_us,) = expiries(run).values()
        assert crash_us - timeout_us // 3 - TRAVEL_US + timeout_us < ended_us
        assert ended_us <= crash_us + timeout_us + tick_us * 3 // 2 + LATENESS_US + TRAVEL_US


@pings
@pytest.mark.parametrize("client", [idles, works])
def test_no_session_ends_while_nothing_is_wrong(awake: list[Any], client: Any) -> None:
    """A client that is alive and connected keeps its session, with the shortest timeout too."""
    for seed in range(5):
        run = play(
            only_stands_by, client, client, seed=seed, timeout_ms=1, timeline=awake, settle="60s"
        )
        assert not run.events(EventKind.SESSION_EXPIRED, EventKind.SUSPENDED, EventKind.EXPIRED)


def test_a_client_that_only_listens_keeps_its_session() -> None:
    """Events from the server are no signs of life of the client: it has to ping all the same."""

    async def listens(zk: ZooKeeper) -> None:
        await new_session()
        await insist(AddWatch("/", recursive=True))
        while True:
            await next_event()

    async def writes(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        while True:
            await sleep(50)
            await zk.set("/a", b"")

    run = play(only_stands_by, listens, writes, timeline=AWAKE, settle="1s")

    assert not run.events(EventKind.SESSION_EXPIRED)


@pytest.mark.parametrize(
    ("asked_ms", "given_ms"),
    [(1, 1000), (999, 1000), (1001, 1001), (9999, 9999), (99_999, 10_000)],
)
def test_a_timeout_lies_between_two_and_twenty_ticks(asked_ms: int, given_ms: int) -> None:
    """What a client asks for is cut to 2 to 20 ticks, and not rounded."""
    run = play(idles, tick="500ms", timeout_ms=asked_ms, settle="1s")

    (opened,) = run.events(EventKind.SESSION_OPENED)
    assert opened.detail["timeout_ms"] == given_ms


def test_sessions_that_end_in_one_tick_end_one_by_one() -> None:
    """Each session that is due in a tick is ended by a write of its own."""
    crashes = [{"crash": f"clients/{client}", "at": "3s"} for client in range(3)]

    run = play(works, works, works, servers=1, timeline=crashes)

    ended = run.events(EventKind.SESSION_EXPIRED)
    assert len({event.t_us // (500 * MS) for event in ended}) == 1
    assert len({event.zxid for event in ended}) == len({event.session for event in ended}) == 3


def test_the_ephemerals_of_a_session_go_at_once_and_others_hear_of_it() -> None:
    """When a session ends all its ephemerals go under one zxid, and a client that watches is
    told."""

    async def holds_many(zk: ZooKeeper) -> None:
        await new_session()
        for _ in range(20):
            await zk.create("/p/e-", ephemeral=True, sequential=True)
        await next_event()

    async def watches(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/p")
        await AddWatch("/p", recursive=True)
        while True:
            await next_event()

    async def holds(zk: ZooKeeper) -> None:
        await sleep(500)
        await holds_many(zk)

    for seed in range(10):
        run = play(watches, holds, seed=seed, timeline=[{"crash": "clients/1", "at": "3s"}])
        (ended,) = run.events(EventKind.SESSION_EXPIRED)
        fired = run.events(EventKind.WATCH_FIRED, node="clients/0", what="deleted")
        assert len(ended.detail["did"]) == 20
        assert {event.zxid for event in fired} == {ended.zxid}
        assert [event.detail["path"] for event in fired] == [
            path for _, path, _ in ended.detail["did"]
        ]
        assert not [path for path in run.tree.nodes if path.startswith("/p/")]


# --- without a leader ------------------------------------------------------------------


def test_nothing_ends_while_there_is_no_quorum() -> None:
    """A loss of quorum that outlasts every timeout ends no session: all come back to theirs."""
    for seed in range(50):
        run = play(
            idles,
            works,
            seed=seed,
            timeout_ms=2000,
            timeline=[{"quorum_loss": "zookeeper", "at": "3s", "for": "8s"}],
            settle="10s",
        )
        assert not run.why_not_real()
        assert run.events(EventKind.LEADER_LOST)
        assert not run.events(EventKind.SESSION_EXPIRED, EventKind.EXPIRED)
        assert sorted(path for path in run.tree.nodes if path.startswith("/e-")) == [
            "/e-0000000000",
            "/e-0000000001",
        ]
        for client in (0, 1):
            connected = run.events(EventKind.CONNECTED, node=f"clients/{client}")
            assert len({event.session for event in connected}) == 1
            assert connected[-1].t_us > 11_000 * MS


def test_nothing_ends_while_the_only_server_is_down() -> None:
    """A single server that comes back after longer than a timeout has kept every session."""
    for seed in range(20):
        run = play(
            idles,
            seed=seed,
            servers=1,
            timeline=[
                {"crash": "zookeeper/1", "at": "3s"},
                {"restart": "zookeeper/1", "at": "9s"},
            ],
        )
        assert not run.events(EventKind.SESSION_EXPIRED, EventKind.EXPIRED)
        assert len(run.events(EventKind.SESSION_OPENED)) == 1
        assert "/e-0000000000" in run.tree.nodes


@pytest.mark.parametrize("timeout_ms", [2000, 4000])
def test_a_new_leader_gives_every_session_its_full_time(timeout_ms: int) -> None:
    """A session whose client died before the election ends a full timeout after it."""
    for seed in range(30):
        timeline = [
            {"crash": "clients/0", "at": "3s"},
            {"quorum_loss": "zookeeper", "at": "3500ms", "for": f"{1000 + 50 * seed}ms"},
        ]
        run = play(idles, seed=seed, timeout_ms=timeout_ms, timeline=timeline, settle="12s")
        elected_us = run.events(EventKind.LEADER_ELECTED)[-1].t_us
        (ended_us,) = expiries(run).values()
        least_us = elected_us + timeout_ms * MS
        assert least_us < ended_us <= least_us + 500 * MS + LATENESS_US + TRAVEL_US


def test_a_session_ends_although_its_leader_is_lost_while_ending_it() -> None:
    """The end of a session that no other server has logged is lost with its leader, and the next
    leader ends the session after a full timeout."""
    crash = {"crash": "clients/0", "at": "3s"}
    (ended_us,) = expiries(play(idles, timeline=[crash])).values()
    delays_us = []
    for early_us in range(0, 1000, 50):
        loss = {"quorum_loss": "zookeeper", "at": f"{ended_us - early_us}us", "for": "1s"}
        run = play(idles, timeline=[crash, loss], settle="12s")
        (again_us,) = expiries(run).values()
        delays_us.append(again_us - ended_us)

    assert min(delays_us) < 3000 * MS, "logged elsewhere: the next leader commits it"
    assert max(delays_us) > 4000 * MS, "lost: the session has its full time again"


# --- when the leader stands still ------------------------------------------------------


def stood_still(servers: int, timeout_ms: int, tick: str, **options: Any) -> list[Run]:
    """Runs in which the leader stood still from 4 s to 7 s."""
    runs = []
    for seed in range(30):
        run = play(
            works,
            idles,
            seed=seed,
            servers=servers,
            tick=tick,
            timeout_ms=timeout_ms,
            timeline=[{"pause": "zookeeper/1", "at": "4s", "for": "3s"}],
            **options,
        )
        if run.first_leader == "zookeeper/1":
            assert not run.why_not_real()
            runs.append(run)
    return runs


@pytest.mark.parametrize("servers", [1, 3])
def test_a_leader_that_stood_still_ends_sessions_that_pinged_in_time(servers: int) -> None:
    """It looks at the clock before its sockets: who was due meanwhile ends, pings or not."""
    for run in stood_still(servers, timeout_ms=2000, tick="1s"):
        assert not run.events(EventKind.LEADER_LOST)
        ended = expiries(run)
        assert len(ended) == 2
        assert {at // (100 * MS) for at in ended.values()} == {70}, "as soon as it goes on"


@pytest.mark.parametrize("servers", [1, 3])
def test_a_leader_that_stood_still_keeps_sessions_with_long_timeouts(servers: int) -> None:
    """A client that was not due while the leader stood still has its session afterwards."""
    for run in stood_still(servers, timeout_ms=9000, tick="1s"):
        assert not run.events(EventKind.LEADER_LOST, EventKind.SESSION_EXPIRED)


def test_a_single_server_that_stood_still_for_long_ends_sessions_too() -> None:
    """There is no client to give a single server up: after any pause it ends what was due."""
    for run in stood_still(1, timeout_ms=2000, tick="500ms"):
        assert {at // (100 * MS) for at in expiries(run).values()} == {70}


def test_a_single_server_that_stood_still_for_long_answers_what_had_arrived() -> None:
    """After a pause, however long, a write is answered or its connection is closed."""

    async def writes(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        while True:
            await insist(zk.set("/a", b""))
            await sleep(10)

    run = play(
        writes,
        servers=1,
        timeout_ms=10_000,
        timeline=[{"pause": "zookeeper/1", "at": "4s", "for": "3s"}],
        settle="30s",
    )

    assert run.events(EventKind.RESPONSE, node="clients/0")[-1].t_us > 30_000 * MS


def test_followers_that_stand_still_end_no_session() -> None:
    """While only a follower stands still, a client that is connected
    elsewhere notices nothing."""
    untouched = 0
    for seed in range(30):
        run = play(
            idles,
            works,
            seed=seed,
            timeout_ms=2000,
            timeline=[{"pause": "zookeeper/1", "at": "4s", "for": "1500ms"}],
        )
        if run.first_leader == "zookeeper/1":
            continue
        assert not run.events(EventKind.LEADER_LOST)
        for client in (0, 1):
            if run.server_of(client) != "zookeeper/1":
                assert not run.events(
                    EventKind.SUSPENDED, EventKind.EXPIRED, node=f"clients/{client}"
                )
                untouched += 1

    assert untouched > 10


# --- closing ---------------------------------------------------------------------------


@pytest.mark.parametrize("servers", [1, 3])
def test_a_session_that_is_closed_ends_at_once(servers: int) -> None:
    """A client that closes its session takes its ephemerals with it, without waiting for a
    timeout."""

    async def closes(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e", ephemeral=True)
        await sleep(1000)
        await close_session()
        await say("closed")

    for seed in range(10):
        run = play(closes, seed=seed, servers=servers)
        (closed,) = run.events(EventKind.SESSION_CLOSED)
        assert closed.t_us < run.only(0, "closed").t_us < 1000 * MS + TRAVEL_US
        assert "/e" not in run.tree.nodes
        assert not run.events(EventKind.SESSION_EXPIRED)


def test_a_client_that_closes_its_session_hears_of_its_own_ephemerals_first() -> None:
    """The events of the end of an own session come before its reply."""

    async def closes(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e", ephemeral=True)
        await zk.get("/e", watch=True)
        await close_session()
        heard = [
            notification.path
            for notification in await notifications()
            if not isinstance(notification, SessionEvent)
        ]  # type: ignore[union-attr]
        await say("heard", own=heard == ["/e"])

    assert play(closes).only(0, "heard").detail["own"]


@pytest.mark.parametrize("servers", [1, 3])
def test_closing_a_session_is_answered_before_the_connection_ends(servers: int) -> None:
    """A farewell is answered: no client hears that its connection was lost."""

    async def closes(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(100)
        await close_session()
        await say("heard", suspended=SessionEvent.SUSPENDED in await notifications())

    run = play(closes, servers=servers)

    assert not run.events(EventKind.SUSPENDED)
    assert not run.only(0, "heard").detail["suspended"]


def test_a_program_that_ends_without_a_farewell_leaves_its_session_behind() -> None:
    """The session of a process that just ends lives on until it expires."""

    async def forgets(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e", ephemeral=True)

    run = play(forgets, timeout_ms=2000)

    (ended_us,) = expiries(run).values()
    assert ended_us > 2000 * MS


# --- moving ----------------------------------------------------------------------------


def test_a_session_goes_on_over_another_connection() -> None:
    """A client that was cut off comes back to the same session, on whichever server."""
    servers = set()
    for seed in range(30):
        run = play(
            idles,
            seed=seed,
            timeline=[{"disconnect": "clients/0", "at": "2s", "for": "200ms"}],
        )
        connected = run.events(EventKind.CONNECTED)
        assert [event.detail["new"] for event in connected] == [True, False]
        assert len({event.session for event in connected}) == 1
        assert "/e-0000000000" in run.tree.nodes
        servers.add(connected[0].detail["at"] == connected[1].detail["at"])

    assert servers == {True, False}


def test_time_spent_disconnected_counts() -> None:
    """A client that stays away for longer than its timeout has lost its session."""
    for seed in range(20):
        run = play(
            idles,
            seed=seed,
            timeout_ms=2000,
            timeline=[{"disconnect": "clients/0", "at": "2s", "for": "4s"}],
        )
        (ended_us,) = expiries(run).values()
        (learnt,) = run.events(EventKind.EXPIRED)
        assert ended_us < 6000 * MS <= learnt.t_us
        assert "/e-0000000000" not in run.tree.nodes


def test_a_session_that_was_ended_by_a_fault_is_learnt_of_at_once() -> None:
    """`expire` ends a session, and its client soon knows."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e", ephemeral=True)
        heard = []
        while SessionEvent.EXPIRED not in heard:
            heard += await notifications(100)
        await say("learnt", order=heard == [SessionEvent.SUSPENDED, SessionEvent.EXPIRED])

    for seed in range(10):
        run = play(client, seed=seed, timeline=[{"expire": "clients/0", "at": "2s"}])
        (ended_us,) = expiries(run).values()
        learnt = run.only(0, "learnt")
        assert ended_us < 2000 * MS + TRAVEL_US
        assert (learnt.t_us < 2500 * MS, learnt.detail["order"]) == (True, True)


def test_a_session_that_was_ended_in_secret_is_learnt_of_later() -> None:
    """`expire` with `unknown` leaves the client in its belief for so long."""
    for seed in range(10):
        run = play(
            idles,
            seed=seed,
            timeout_ms=10_000,
            timeline=[{"expire": "clients/0", "at": "2s", "unknown": "1500ms"}],
        )
        (ended_us,) = expiries(run).values()
        (learnt,) = run.events(EventKind.EXPIRED)
        assert ended_us < 2000 * MS + TRAVEL_US
        assert learnt.t_us > 3500 * MS
        assert all(event.t_us >= 3500 * MS for event in run.events(EventKind.SUSPENDED))


def test_a_client_on_a_server_without_its_leader_is_not_heard_of() -> None:
    """A client of a follower that is cut off from the leader loses its session meanwhile."""

    async def tries(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e-", ephemeral=True, sequential=True)
        while True:
            await sleep(50)
            try:
                await zk.exists("/")
            except ConnectionLoss:
                await say("lost")
                return

    cut = [
        {"partition": server, "from": "zookeeper", "at": "3s", "for": "1900ms"}
        for server in SERVERS[1:2]
    ]
    seen = 0
    for seed in range(60):
        run = play(tries, seed=seed, timeout_ms=1000, timeline=cut, settle="3s")
        if run.first_leader == "zookeeper/2" or run.server_of(0) != "zookeeper/2":
            continue
        seen += 1
        lost = [event.t_us for event in run.reported(0, "lost")]
        (ended_us,) = expiries(run).values()
        assert 4000 * MS < ended_us < 5000 * MS
        assert not lost or lost[0] > ended_us

    assert seen > 5
