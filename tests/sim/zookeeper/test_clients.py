"""What a simulated client believes, and what its program hears of its connection."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.zookeeper.programs import (
    MS,
    SERVERS,
    Run,
    Script,
    insist,
    notifications,
    outcome_of,
    play,
    say,
)
from watchkeeper.model.actor.effects import connected, new_session, next_event, now_ms, sleep
from watchkeeper.model.actor.errors import ConnectionLoss, SessionExpired
from watchkeeper.model.actor.events import Fired, SessionEvent, WatchEventType
from watchkeeper.model.actor.operations import (
    AddWatch,
    Exists,
    GetChildren,
    GetData,
    RemoveWatches,
    WatchKind,
    ZooKeeper,
)
from watchkeeper.model.trace.kinds import EventKind

SUSPENDED, CONNECTED, EXPIRED = (
    SessionEvent.SUSPENDED,
    SessionEvent.CONNECTED,
    SessionEvent.EXPIRED,
)
BREAK = {"disconnect": "clients/0", "at": "1s", "for": "500ms"}
"""The first client is away from 1 s to some 100 ms after 1.5 s."""

CUT_OFF = {"partition": "clients/0", "from": "zookeeper", "at": "2s", "for": "13s"}
"""The first client reaches no client from 2 s to 15 s."""


def notes_of(run: Run, client: int = 0) -> list[str]:
    """What has come into the inbox of a client, in order."""
    return [
        " ".join([event.detail["what"], event.detail.get("path", "")]).strip()
        for event in run.events(EventKind.NOTIFIED, node=f"clients/{client}")
    ]


async def writes_meanwhile(zk: ZooKeeper) -> None:
    """At 1.2 s change everything that the first client may watch."""
    await new_session()
    await sleep(1200)
    await zk.set("/a", b"changed")
    await zk.create("/a/child")
    await zk.create("/came")
    await sleep(5000)
    await zk.set("/a", b"changed again")
    await sleep(100_000)


def watches(*asks: Any) -> Script:
    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        for effect in asks:
            await effect
        while True:
            await next_event()

    return watcher


ALL_KINDS = (
    GetData("/a", watch=True),
    GetChildren("/a", watch=True),
    Exists("/came", watch=True),
    AddWatch("/a"),
)


# --- watches over a broken connection --------------------------------------------------


def test_a_client_like_kazoo_has_lost_its_watches_when_it_comes_back() -> None:
    """What changed while it was away, and what changes later, it is not told."""
    for seed in range(20):
        run = play(
            watches(*ALL_KINDS), writes_meanwhile, seed=seed, timeline=[BREAK], settle="8s"
        )
        assert notes_of(run) == ["suspended", "connected"]


def test_a_client_like_java_leaves_its_watches_again() -> None:
    """It hears what changed while it was away when it is back, and later changes too."""
    for seed in range(20):
        run = play(
            watches(*ALL_KINDS),
            writes_meanwhile,
            seed=seed,
            resends_watches=True,
            timeline=[BREAK],
            settle="8s",
        )
        assert notes_of(run) == [
            "suspended",
            "connected",
            "changed /a",
            "created /came",
            "children changed /a",
            "changed /a",  # the watch that stays goes on
        ]


def test_a_client_like_java_hears_nothing_where_nothing_has_changed() -> None:
    """A watch that missed nothing is just left again and fires by the next change."""
    run = play(
        watches(GetData("/a", watch=True)),
        writes_meanwhile,
        resends_watches=True,
        timeline=[{**BREAK, "at": "3s"}, {**BREAK, "at": "2s"}],
        settle="6s",
    )

    assert notes_of(run) == ["changed /a", "suspended", "connected", "suspended", "connected"]


def test_a_client_like_java_does_not_leave_again_what_has_fired() -> None:
    """A watch that was used up before the connection broke is not left again."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await zk.get("/a", watch=True)
        await zk.set("/a", b"own")
        while True:
            await next_event()

    run = play(watcher, writes_meanwhile, resends_watches=True, timeline=[BREAK], settle="8s")

    assert notes_of(run) == ["changed /a", "suspended", "connected"]


def test_a_client_like_java_does_not_leave_again_what_it_has_removed() -> None:
    """Watches that the program took back stay away after a reconnection."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await zk.get("/a", watch=True)
        await RemoveWatches("/a")
        while True:
            await next_event()

    run = play(watcher, writes_meanwhile, resends_watches=True, timeline=[BREAK], settle="8s")

    assert notes_of(run) == ["suspended", "connected"]


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("data", ["created /came", "children changed /a"]),
        ("child", ["changed /a", "created /came"]),
        ("persistent", ["changed /a", "created /came", "children changed /a"]),
    ],
)
def test_a_client_like_java_leaves_again_the_kinds_that_it_has_kept(
    kind: WatchKind, left: list[str]
) -> None:
    """Of several watches at one path, only those of the removed kind stay away."""
    sets = (*ALL_KINDS[:3], AddWatch("/a"), RemoveWatches("/a", kind=kind))

    run = play(
        watches(*sets), writes_meanwhile, resends_watches=True, timeline=[BREAK], settle="4s"
    )

    assert notes_of(run) == ["suspended", "connected", *left]


def test_a_client_like_java_begins_a_new_session_without_watches() -> None:
    """Watches belong to a session: the next one has none of them."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await zk.get("/a", watch=True)
        while await next_event() is not EXPIRED:
            pass
        await new_session()
        while True:
            await next_event()

    run = play(
        watcher,
        writes_meanwhile,
        resends_watches=True,
        timeline=[{"expire": "clients/0", "at": "1s"}],
        settle="8s",
    )

    assert notes_of(run) == ["suspended", "expired"]


def test_watches_that_are_left_again_over_a_dead_connection_do_no_harm() -> None:
    """A client that wakes and re-sends its watches over a connection long dead is not heard."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await zk.get("/a", watch=True)
        while True:
            await next_event()

    async def writes_late(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(4700)
        await insist(zk.set("/a", b""))
        await sleep(100_000)

    run = play(
        watcher,
        writes_late,
        servers=1,
        timeout_ms=10_000,
        resends_watches=True,
        timeline=[
            {"delay": "clients/0", "by": "200ms", "at": "900ms", "for": "10s"},
            {"disconnect": "clients/0", "at": "990ms", "for": "10ms"},
            {"pause": "clients/0", "at": "1400ms", "for": "3s"},
            {"crash": "zookeeper/1", "at": "1450ms"},
            {"restart": "zookeeper/1", "at": "1500ms"},
        ],
    )

    assert notes_of(run) == ["suspended", "connected", "suspended", "connected", "changed /a"]


def test_old_notes_are_not_taken_for_new_ones() -> None:
    """What fired on the old connection and is late does not come over the new one."""
    for seed in range(30):
        run = play(
            watches(AddWatch("/a")),
            writes_meanwhile,
            seed=seed,
            timeline=[{"disconnect": "clients/0", "at": "1200ms", "for": "10ms"}],
        )
        heard = notes_of(run)
        assert "connected" not in heard[: heard.index("suspended")]
        assert heard[heard.index("connected") + 1 :] == []


# --- what a program hears -------------------------------------------------------------


def test_a_break_is_reported_and_so_is_the_return() -> None:
    """SUSPENDED comes at once, CONNECTED when a server has given the session back."""

    async def listens(zk: ZooKeeper) -> None:
        await new_session()
        while (notification := await next_event()) is not None:
            await say("told", notification=notification.value)  # type: ignore[union-attr]

    for seed in range(20):
        run = play(listens, seed=seed, timeline=[{**BREAK, "for": "10ms"}])
        notifications = [
            (event.detail["notification"], event.t_us // MS) for event in run.reported(0)
        ]
        assert [notification for notification, _ in notifications] == ["suspended", "connected"]
        assert notifications[0][1] == 1000
        assert 1060 <= notifications[1][1] <= 1200


@pytest.mark.parametrize("servers", [1, 3])
def test_an_outage_longer_than_the_timeout_leaves_the_client_suspended(servers: int) -> None:
    """The session has ended long ago; the client learns so when it reaches a server again."""

    async def tries(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e", ephemeral=True)
        began_ms = await now_ms()
        while await now_ms() - began_ms < 14_000:
            await sleep(200)
            await say("tried", outcome=await outcome_of(zk.exists("/e")))
        while True:
            await next_event()

    for seed in range(20):
        run = play(
            tries, seed=seed, servers=servers, timeout_ms=2000, timeline=[CUT_OFF], settle="8s"
        )
        (ended,) = run.events(EventKind.SESSION_EXPIRED)
        (suspended,) = run.events(EventKind.SUSPENDED)
        (learnt,) = run.events(EventKind.EXPIRED)
        assert suspended.t_us < ended.t_us, "it gives up before the ensemble does"
        assert 4000 * MS - 700 * MS < ended.t_us < 4600 * MS
        assert learnt.t_us > 15_000 * MS
        assert notes_of(run) == ["suspended", "expired"]
        outcomes = [event.detail["outcome"] for event in run.reported(0, "tried")]
        first = outcomes.index("may have happened")
        assert set(outcomes[:first]) == {"done"}
        assert set(outcomes[first + 1 :]) == {"not sent"}


@pytest.mark.parametrize("timeout_ms", [2000, 4000, 10_000])
def test_a_client_that_hears_nothing_gives_up_before_its_session_ends(timeout_ms: int) -> None:
    """Two thirds of the timeout without a sign, less some jitter, and the client lets go."""
    took = []
    for seed in range(30):
        run = play(
            watches(),
            seed=seed,
            timeout_ms=timeout_ms,
            timeline=[{**CUT_OFF, "at": f"{3000 + 61 * seed}ms"}],
            settle="1s",
        )
        (suspended,) = run.events(EventKind.SUSPENDED)
        took.append(suspended.t_us // MS - 3000 - 61 * seed)

    jitter_ms = min(400, timeout_ms // 6)
    assert timeout_ms // 3 - 2 * jitter_ms <= min(took)
    assert max(took) <= timeout_ms * 2 // 3 + 10
    assert max(took) - min(took) > timeout_ms // 10


def test_nothing_passes_in_the_direction_that_is_cut() -> None:
    """Where only the way back is cut, requests are done and their client does not learn so."""

    async def creates(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(2500)
        await say("asked", outcome=await outcome_of(zk.create("/a")))

    there = {}
    for direction in ("to", "from"):
        run = play(
            creates,
            timeout_ms=4000,
            timeline=[{**CUT_OFF, "direction": direction, "for": "10s"}],
            settle="1ms",
        )
        assert run.only(0, "asked").detail["outcome"] == "may have happened"
        applied = run.events(EventKind.APPLIED, path="/a")
        there[direction] = bool(applied) and applied[0].t_us < 3000 * MS

    assert there == {"to": False, "from": True}


def test_everything_fails_in_a_dead_session_until_there_is_a_new_one() -> None:
    """After EXPIRED each request is SessionExpired; a new session has no ephemerals."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e", ephemeral=True)
        while await next_event() is not EXPIRED:
            pass
        for effect in (zk.get("/"), zk.create("/x"), zk.multi([])):
            await say("asked", outcome=await outcome_of(effect))
        await say("asked", outcome=await outcome_of(zk.pipelined([zk.get("/")])))  # type: ignore[arg-type]
        await new_session()
        await say(
            "anew",
            there=await zk.exists("/e") is not None,
            notifications=len(await notifications()),
        )

    for seed in range(10):
        run = play(client, seed=seed, timeline=[{"expire": "clients/0", "at": "1s"}])
        assert [event.detail["outcome"] for event in run.reported(0, "asked")] == ["expired"] * 4
        anew = run.only(0, "anew").detail
        assert (anew["there"], anew["notifications"]) == (False, 0)
        opened = run.events(EventKind.SESSION_OPENED)
        assert len({event.session for event in opened}) == 2


def test_a_new_session_empties_the_inbox() -> None:
    """Notes of the old session never arrive in the new one."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await insist(zk.create("/a"))
        await AddWatch("/a")
        for _ in range(3):
            await zk.set("/a", b"")
        await sleep(2000)
        await say("asked", outcome=await outcome_of(zk.get("/a")))
        await new_session()
        await say("notes", count=len(await notifications(500)))

    run = play(client, timeline=[{"expire": "clients/0", "at": "1s"}])

    assert run.only(0, "asked").detail["outcome"] == "expired"
    assert run.only(0, "notes").detail["count"] == 0


def test_waiting_for_a_connection_ends_with_the_session() -> None:
    """A client that waits to be connected hears when the session turns out dead instead."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        while await next_event() is not SUSPENDED:
            pass
        try:
            await connected()
            await say("waited", outcome="connected")
        except SessionExpired:
            await say("waited", outcome="expired")

    for for_ms, outcome in (("100ms", "connected"), ("8s", "expired")):
        run = play(client, timeline=[{**BREAK, "for": for_ms}], settle="8s", timeout_ms=2000)
        assert run.only(0, "waited").detail["outcome"] == outcome


# --- pauses ----------------------------------------------------------------------------


def after_a_long_pause() -> list[str]:
    """What came of the first request of clients that stood still for longer than a timeout."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/e", ephemeral=True)
        await sleep(2000)
        await say("asked", outcome=await outcome_of(zk.set("/e", b"zombie")))
        while True:
            await next_event()

    outcomes = []
    for seed in range(60):
        run = play(
            client,
            seed=seed,
            timeout_ms=2000,
            timeline=[{"pause": "clients/0", "at": "1s", "for": "6s"}],
        )
        (ended,) = run.events(EventKind.SESSION_EXPIRED)
        (learnt,) = run.events(EventKind.EXPIRED)
        request = run.only(0, "asked")
        assert ended.t_us < request.t_us
        assert not run.events(EventKind.APPLIED, op="set")
        assert 0 < learnt.t_us - 7000 * MS < 400 * MS
        outcomes.append(request.detail["outcome"])
    return outcomes


def test_a_client_that_stood_still_may_believe_for_a_moment_that_it_is_connected() -> None:
    """On waking it may ask before it knows, in a session that is dead; nothing comes of it."""
    outcomes = after_a_long_pause()

    assert outcomes.count("may have happened") > 5
    assert "done" not in outcomes


def test_a_client_that_stood_still_may_also_know_at_once() -> None:
    """Its own thread may as well be the first to look, and then the request is not sent."""
    assert after_a_long_pause().count("not sent") > 5


def test_a_pause_shorter_than_the_timeout_costs_nothing() -> None:
    """A client that stood still for a moment goes on in its session, mostly connected."""
    for seed in range(20):
        run = play(
            watches(GetData("/a", watch=True)),
            writes_meanwhile,
            seed=seed,
            timeout_ms=6000,
            timeline=[{"pause": "clients/0", "at": "1s", "for": "1s"}],
        )
        assert not run.events(EventKind.SESSION_EXPIRED, EventKind.SUSPENDED)
        (heard,) = run.events(EventKind.NOTIFIED, what="changed")
        assert heard.t_us >= 2000 * MS, "nothing is looked at during the pause"


def test_a_program_that_stands_still_does_nothing_at_all() -> None:
    """During a pause no program asks, says or hears anything."""

    async def busy(zk: ZooKeeper) -> None:
        await new_session()
        while True:
            await insist(zk.exists("/"))
            await sleep(10)

    for seed in range(10):
        run = play(busy, seed=seed, timeline=[{"pause": "clients/0", "at": "1s", "for": "700ms"}])
        node = "clients/0"
        during = [
            event
            for event in run.events(
                EventKind.REQUEST,
                EventKind.RESPONSE,
                EventKind.NOTIFIED,
                EventKind.SLEEPING,
                "says",
                node=node,
            )
            if 1000 * MS < event.t_us < 1700 * MS
        ]
        assert during == []
        assert run.events(EventKind.REQUEST, node=node)[-1].t_us > 2000 * MS


# --- pings -----------------------------------------------------------------------------


def test_a_write_that_cannot_be_done_keeps_its_client_without_pings() -> None:
    """Replies come in order: behind a write that waits for a quorum no ping is answered."""

    async def writes(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await sleep(2100)
        await say("asked", outcome=await outcome_of(zk.set("/a", b"")))

    stuck = 0
    for seed in range(40):
        run = play(
            writes,
            seed=seed,
            tick="1s",
            timeout_ms=3000,
            timeline=[{"pause": server, "at": "2s", "for": "3500ms"} for server in SERVERS[1:]],
        )
        if run.first_leader == run.server_of(0) == "zookeeper/1":
            stuck += 1
            (suspended,) = run.events(EventKind.SUSPENDED)
            assert suspended.detail["why"] == "no answer"

    assert stuck > 0


@pytest.mark.parametrize("what", ["pause", "crash"])
def test_a_client_leaves_a_server_that_does_not_answer_for_another(what: str) -> None:
    """A follower that stands still or dies loses its clients, and their sessions, to others."""
    fault: dict[str, Any] = {what: "zookeeper/1", "at": "2s"}
    if what == "pause":
        fault["for"] = "9s"
    moved = 0
    for seed in range(40):
        run = play(watches(), seed=seed, timeout_ms=4000, timeline=[fault], settle="9s")
        if run.first_leader == "zookeeper/1" or run.server_of(0) != "zookeeper/1":
            continue
        moved += 1
        assert not run.events(EventKind.SESSION_EXPIRED, EventKind.EXPIRED)
        assert run.events(EventKind.CONNECTED)[-1].detail["at"] != "zookeeper/1"

    assert moved > 2


def test_a_latency_delays_and_breaks_nothing() -> None:
    """A slow link makes every answer late and loses no session."""

    async def asks(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(2000)
        before = await now_ms()
        await zk.exists("/")
        await say("took", ms=await now_ms() - before)

    run = play(
        asks,
        timeout_ms=9000,
        timeline=[{"delay": "clients/0", "by": "300ms", "at": "1s", "for": "10s"}],
    )

    assert 600 <= run.only(0, "took").detail["ms"] < 620
    assert not run.events(EventKind.SUSPENDED)


def test_events_come_in_time_while_a_program_waits() -> None:
    """A client that waits for a note is woken by it, and by nothing when the time is up."""

    async def waits(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await zk.get("/a", watch=True)
        await say("timed out", notification=str(await next_event(500)))
        await say("woken", right=await next_event(5000) == Fired(WatchEventType.CHANGED, "/a"))

    run = play(waits, writes_meanwhile)

    assert run.only(0, "timed out").detail["notification"] == "None"
    assert run.only(0, "woken").detail["right"]
    assert 1200 * MS < run.only(0, "woken").t_us < 1220 * MS


def test_a_request_under_way_fails_when_the_connection_breaks() -> None:
    """What was sent and not answered may have happened; the note comes along with the failure."""

    async def asks_all_the_time(zk: ZooKeeper) -> None:
        await new_session()
        try:
            while True:
                await zk.exists("/")
        except ConnectionLoss as error:
            await say("lost", sent=error.sent, told=await notifications() == [SUSPENDED])
        await connected()
        await say("back", told=await notifications() == [CONNECTED])

    for seed in range(20):
        run = play(asks_all_the_time, seed=seed, timeline=[{**BREAK, "at": "300ms"}])
        assert dict(run.only(0, "lost").detail) == {"what": "lost", "sent": True, "told": True}
        assert run.only(0, "back").detail["told"]
