"""What becomes of writes when messages are lost, and servers die or stand still."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.zookeeper.programs import (
    MS,
    SERVERS,
    TRAVEL_US,
    Run,
    Script,
    insist,
    outcome_of,
    play,
    say,
)
from watchkeeper import simulate
from watchkeeper.model.actor.effects import connected, new_session, now_ms, sleep
from watchkeeper.model.actor.errors import ConnectionLoss, NodeExists
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.trace.kinds import EventKind

any_size = pytest.mark.parametrize("servers", [1, 3])

THE_CLAIM = {"node": "clients/0", "purpose": "claim", "nth": 1}


def claims(path: str = "/claim", *, then_waits_ms: int = 0) -> Any:
    """Create a znode once, for a purpose that faults can aim at; say what came of it."""

    async def claimer(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1000)
        await say("asked", outcome=await outcome_of(zk.create(path, purpose="claim")))
        await connected()
        await say("back", there=await zk.exists(path) is not None)
        await sleep(then_waits_ms)
        await say("later", there=await zk.exists(path) is not None)
        await sleep(100_000)

    return claimer


# --- one message lost ------------------------------------------------------------------


@any_size
def test_when_the_reply_is_lost_the_write_has_happened(servers: int) -> None:
    """A client that loses only the reply cannot know, but its write took effect."""
    for seed in range(30):
        run = play(
            claims(), servers=servers, seed=seed, timeline=[{"lose": "reply", "on": THE_CLAIM}]
        )
        assert not run.why_not_real()
        assert run.only(0, "asked").detail["outcome"] == "may have happened"
        assert run.only(0, "back").detail["there"]


@any_size
def test_when_the_request_is_lost_the_write_has_not_happened(servers: int) -> None:
    """A client that loses the request cannot know either, and nothing took effect."""
    for seed in range(30):
        run = play(
            claims(then_waits_ms=5000),
            servers=servers,
            seed=seed,
            timeline=[{"lose": "request", "on": THE_CLAIM}],
            settle="8s",
        )
        assert not run.why_not_real()
        assert run.only(0, "asked").detail["outcome"] == "may have happened"
        assert not run.only(0, "later").detail["there"]
        assert not run.events(EventKind.APPLIED, path="/claim")


@any_size
def test_a_lost_request_may_land_after_its_client_has_come_back_and_looked(servers: int) -> None:
    """A late request: the write is not there when the client looks, and is there later."""
    for seed in range(30):
        run = play(
            claims(then_waits_ms=1500),
            servers=servers,
            seed=seed,
            timeline=[{"lose": "request", "on": THE_CLAIM, "lands_after": "1s"}],
            settle="6s",
        )
        assert not run.why_not_real()
        assert run.only(0, "asked").detail["outcome"] == "may have happened"
        assert not run.only(0, "back").detail["there"]
        assert run.only(0, "later").detail["there"]
        (applied,) = run.events(EventKind.APPLIED, path="/claim")
        assert run.only(0, "back").t_us < applied.t_us
        assert applied.session == run.session_of(0), "it is done in the session that asked"


def test_a_late_request_of_a_dead_session_does_nothing() -> None:
    """What lands after the end of its session is not done."""

    async def claims_and_dies(zk: ZooKeeper) -> None:
        await new_session()
        await outcome_of(zk.create("/claim", purpose="claim"))

    for seed in range(30):
        run = play(
            claims_and_dies,
            seed=seed,
            timeout_ms=1000,
            timeline=[{"lose": "request", "on": THE_CLAIM, "lands_after": "4s"}],
            settle="8s",
        )
        assert run.events(EventKind.SESSION_EXPIRED)
        assert not run.events(EventKind.APPLIED, path="/claim")


def test_a_late_request_is_refused_for_what_it_finds() -> None:
    """A write that lands late is judged by the tree of that moment."""

    async def claims_twice(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await outcome_of(zk.set("/a", b"late", version=0, purpose="claim"))
        await connected()
        await zk.set("/a", b"fence", version=0)
        await sleep(3000)
        await say("later", data=(await zk.get("/a")).data.decode())

    for seed in range(20):
        run = play(
            claims_twice,
            seed=seed,
            timeline=[{"lose": "request", "on": THE_CLAIM, "lands_after": "1s"}],
            settle="8s",
        )
        (refused,) = run.events(EventKind.REFUSED)
        assert refused.detail["error"] == "BadVersion"
        assert run.only(0, "later").detail["data"] == "fence"


def test_a_lost_reply_makes_two_of_a_sequential_znode_that_is_retried() -> None:
    """A client that creates a sequential znode again after a loss may have two."""

    async def retries(zk: ZooKeeper) -> None:
        await new_session()
        create = zk.create("/s-", ephemeral=True, sequential=True, purpose="claim")
        await insist(create)
        await sleep(100_000)

    run = play(retries, timeline=[{"lose": "reply", "on": THE_CLAIM}])

    owners = [run.tree.nodes[f"/s-{number:010d}"].owner for number in (0, 1)]
    assert owners == [run.session_of(0)] * 2


def test_a_lost_reply_makes_a_retry_meet_its_own_znode() -> None:
    """A client that creates a named znode again after a loss may meet NodeExists, and it is its
    own."""

    async def retries(zk: ZooKeeper) -> None:
        await new_session()
        with pytest.raises(NodeExists):
            await insist(zk.create("/a", ephemeral=True, purpose="claim"))
        await say("met", mine=(await zk.get("/a")).mine)

    run = play(retries, timeline=[{"lose": "reply", "on": THE_CLAIM}])

    assert run.only(0, "met").detail["mine"]


# --- connections that break ------------------------------------------------------------


def writes_numbers(*moments_ms: int) -> Script:
    """Create one znode after the other, without a pause about these moments; say how it went."""

    async def writer(zk: ZooKeeper) -> None:
        began_ms = await now_ms()
        await new_session()
        number = 0
        while True:
            path = f"/w-{number:06d}"
            result = await outcome_of(zk.create(path))
            await say("wrote", path=path, outcome=result)
            number += 1
            if result != "done":
                await connected()
            at_ms = await now_ms() - began_ms
            if not any(-4 <= at_ms - moment <= 4 for moment in moments_ms):
                next_ms = [moment - 4 - at_ms for moment in moments_ms if moment - 4 > at_ms]
                await sleep(min([100, *next_ms]))

    return writer


def fates(run: Run, client: int = 0) -> Counter[tuple[str, bool]]:
    """How many writes had which outcome and are there in the end."""
    return Counter(
        (event.detail["outcome"], event.detail["path"] in run.tree.nodes)
        for event in run.reported(client, "wrote")
    )


def together(runs: list[Run]) -> Counter[tuple[str, bool]]:
    """The fates of all runs."""
    total: Counter[tuple[str, bool]] = Counter()
    for run in runs:
        total += fates(run)
    return total


def assert_promises_kept(total: Counter[tuple[str, bool]]) -> None:
    """What was acknowledged is there, what was not sent is not; no client knows of the rest."""
    assert total["done", False] == 0, "an acknowledged write has vanished"
    assert total["not sent", True] == 0, "a write took effect that was never sent"
    assert total["done", True] > 0


def test_a_write_that_a_broken_connection_interrupts_may_or_may_not_have_happened() -> None:
    """Both happen; but what was acknowledged has happened, and what was not sent has not."""
    breaks = {"disconnect": "clients/0", "at": "500ms", "for": "100ms"}

    total = together(
        [
            play(writes_numbers(500), seed=seed, timeline=[breaks], settle="500ms")
            for seed in range(100)
        ]
    )

    assert_promises_kept(total)
    assert total["may have happened", True] > 1
    assert total["may have happened", False] > 1


def test_requests_of_a_client_without_a_connection_fail_at_once() -> None:
    """While the connection is down everything fails without being sent, in no time."""

    async def asks_while_down(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1500)
        for effect in (zk.create("/x"), zk.get("/"), zk.pipelined([zk.create("/y")])):
            before = await now_ms()
            await say("asked", outcome=await outcome_of(effect), took_ms=await now_ms() - before)  # type: ignore[arg-type]

    run = play(asks_while_down, timeline=[{"disconnect": "clients/0", "at": "1s", "for": "1s"}])

    outcomes = [(event.detail["outcome"], event.detail["took_ms"]) for event in run.reported(0)]
    assert outcomes == [("not sent", 0)] * 3
    assert not {"/x", "/y"} & set(run.tree.nodes)


def test_a_connection_that_is_down_cannot_break() -> None:
    """A fault that comes while it is down says why it has no effect."""

    async def asks_while_down(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(5000)
        await say("asked", outcome=await outcome_of(zk.get("/")))

    down = {"partition": "clients/0", "from": "zookeeper", "at": "500ms", "for": "9s"}
    breaks = {"disconnect": "clients/0", "at": "4s", "for": "100ms"}
    lost = {"lose": "request", "on": {"node": "clients/0", "purpose": "other", "nth": 1}}
    run = play(asks_while_down, timeline=[down, breaks, lost])

    first, *others = run.world.nemesis.effects
    assert first.missed == ""
    assert [effect.missed for effect in others] == ["its client has no connection then"] * 2


def test_nothing_is_done_that_was_sent_after_the_server_had_closed() -> None:
    """A write over a connection whose server died seconds before takes no effect, ever."""

    async def believes(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1000)
        await say("asked", outcome=await outcome_of(zk.create("/x")))
        await sleep(100_000)

    total: Counter[tuple[str, bool]] = Counter()
    for seed in range(40):
        run = play(
            believes,
            seed=seed,
            servers=1,
            timeout_ms=10_000,
            timeline=[
                {"pause": "clients/0", "at": "500ms", "for": "6s"},
                {"crash": "zookeeper/1", "at": "1s"},
                {"restart": "zookeeper/1", "at": "1100ms"},
            ],
        )
        total[run.only(0, "asked").detail["outcome"], "/x" in run.tree.nodes] += 1

    assert total["may have happened", False] > 0
    assert total["may have happened", True] == 0


# --- servers that die ------------------------------------------------------------------


@any_size
def test_what_was_acknowledged_survives_every_crash(servers: int) -> None:
    """Whichever server dies, and dies again, no acknowledged write is lost; others may be."""
    runs = []
    for seed in range(60):
        crashes = [
            {word: server, "at": f"{at}ms"}
            for number, server in enumerate(SERVERS[:servers])
            for word, at in (("crash", 1000 + 2500 * number), ("restart", 1500 + 2500 * number))
        ]
        runs.append(
            play(
                writes_numbers(1000, 3500, 6000),
                seed=seed,
                servers=servers,
                timeout_ms=10_000,
                timeline=crashes,
                settle="2500ms",
            )
        )

    total = together(runs)
    assert_promises_kept(total)
    assert total["may have happened", False] > 5
    if servers > 1:  # a single server answers in the very moment when a write is safe
        assert total["may have happened", True] > 5


def test_a_rolling_restart_loses_nothing_that_was_acknowledged() -> None:
    """Every server is restarted in turn; what was acknowledged stays, and sessions do."""
    for seed in range(20):
        run = play(
            writes_numbers(1000, 4000, 7000),
            seed=seed,
            timeout_ms=10_000,
            timeline=[{"rolling_restart": "zookeeper", "at": "1s", "each": "1500ms"}],
            settle="5s",
        )
        assert_promises_kept(fates(run))
        assert run.events(EventKind.LEADER_LOST)
        assert not run.events(EventKind.SESSION_EXPIRED)
        assert next(reversed(list(run.reported(0)))).t_us > run.trace.end_us - 150 * MS


def test_a_loss_of_quorum_loses_nothing_that_was_acknowledged() -> None:
    """Nothing is acknowledged while there is no majority, and nothing is forgotten."""
    total: Counter[tuple[str, bool]] = Counter()
    for seed in range(40):
        run = play(
            writes_numbers(1000),
            seed=seed,
            timeout_ms=10_000,
            timeline=[{"quorum_loss": "zookeeper", "at": "1s", "for": "3s"}],
            settle="6s",
        )
        total += fates(run)
        done = [event.t_us for event in run.reported(0) if event.detail["outcome"] == "done"]
        assert not [at for at in done if 1000 * MS + TRAVEL_US < at < 4000 * MS]
        assert done[-1] > 4000 * MS

    assert_promises_kept(total)


@pytest.mark.parametrize("what", ["pause", "partition"])
def test_a_leader_that_is_cut_off_or_stands_still_loses_nothing(what: str) -> None:
    """The others elect another; what was acknowledged stays, what the old one had may not."""
    fault: dict[str, Any] = {what: "zookeeper/1", "at": "1s", "for": "4s"}
    if what == "partition":
        fault["from"] = "zookeeper"
    runs = [
        play(
            writes_numbers(1000),
            writes_nothing,
            seed=seed,
            timeout_ms=10_000,
            timeline=[fault],
            settle="3s",
        )
        for seed in range(60)
    ]
    deposed = [run for run in runs if run.first_leader == "zookeeper/1"]

    assert len(deposed) > 10
    for run in deposed:
        assert_promises_kept(fates(run))
        assert len(run.events(EventKind.LEADER_ELECTED)) > 1
    assert together(deposed)["may have happened", False] > 0


async def writes_nothing(zk: ZooKeeper) -> None:
    """Be there."""
    await new_session()
    await sleep(1_000_000)


def test_when_the_leader_dies_every_client_is_disconnected_and_keeps_its_session() -> None:
    """Clients of all servers lose their connections within 30 ms and come back to theirs."""
    seen = 0
    for seed in range(30):
        run = play(
            *[writes_nothing] * 4,
            seed=seed,
            timeout_ms=4000,
            timeline=[{"crash": "zookeeper/1", "at": "2s"}],
            settle="4s",
        )
        if run.first_leader != "zookeeper/1":
            continue
        seen += 1
        suspended = {
            event.node: event.t_us
            for event in run.events(EventKind.SUSPENDED)
            if event.t_us < 2100 * MS
        }
        assert len(suspended) == 4
        assert all(2000 * MS <= at <= 2030 * MS for at in suspended.values())
        elected = run.events(EventKind.LEADER_ELECTED)[-1]
        assert 2200 * MS < elected.t_us < 2600 * MS
        assert not run.events(EventKind.SESSION_EXPIRED, EventKind.EXPIRED)
        assert len(run.events(EventKind.SESSION_OPENED)) == 4

    assert seen > 5


def test_when_a_follower_dies_clients_of_the_others_notice_nothing() -> None:
    """A follower takes only its own clients with it."""
    left_alone = 0
    for seed in range(30):
        run = play(
            *[writes_nothing] * 4,
            seed=seed,
            timeline=[{"crash": "zookeeper/1", "at": "2s"}],
            settle="4s",
        )
        if run.first_leader == "zookeeper/1":
            continue
        for client in range(4):
            suspended = run.events(EventKind.SUSPENDED, node=f"clients/{client}")
            assert len(suspended) == (run.server_of(client) == "zookeeper/1")
            left_alone += not suspended

    assert left_alone > 20


def test_each_leader_counts_zxids_anew() -> None:
    """In an ensemble a zxid has the number of the election above and a count below."""
    for seed in range(10):
        run = play(
            writes_numbers(),
            seed=seed,
            timeout_ms=10_000,
            timeline=[{"quorum_loss": "zookeeper", "at": "1s", "for": "2s"}],
            settle="6s",
        )
        elected = run.events(EventKind.LEADER_ELECTED)
        assert [event.detail["epoch"] for event in elected] == list(range(1, len(elected) + 1))
        zxids = [event.zxid for event in run.events(EventKind.APPLIED)]
        assert zxids == sorted(zxids)
        assert {zxid >> 32 for zxid in zxids} <= set(range(1, len(elected) + 1))
        last_epoch = [zxid & 0xFFFFFFFF for zxid in zxids if zxid >> 32 == len(elected)]
        assert last_epoch[0] <= 3


def test_a_single_server_counts_on_over_its_crashes() -> None:
    """A server that is alone has no epochs: its zxids go on where they were."""
    run = play(
        writes_numbers(),
        servers=1,
        timeout_ms=10_000,
        timeline=[
            {"crash": "zookeeper/1", "at": "1s"},
            {"restart": "zookeeper/1", "at": "2s"},
        ],
    )

    zxids = [
        event.zxid
        for event in run.events(EventKind.SESSION_OPENED, EventKind.APPLIED, EventKind.REFUSED)
    ]
    assert zxids == list(range(1, len(zxids) + 1))


def test_a_leader_that_was_deposed_gives_old_data_for_a_moment() -> None:
    """A leader that stood still answers its old clients, sync too, before it finds out."""

    async def reads(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(12_990)
        try:
            while True:
                await zk.sync("/a")
                await say("read", version=(await zk.get("/a")).version)
        except ConnectionLoss:
            await say("lost")

    async def writes(zk: ZooKeeper) -> None:
        await new_session()
        await insist(zk.exists("/a"))
        await sleep(1000)
        while True:
            await say("wrote", version=await insist(zk.set("/a", b"")))
            await sleep(200)

    async def creates(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")

    old = found_out = 0
    for seed in range(60):
        run = play(
            reads,
            creates,
            *[writes] * 3,
            seed=seed,
            tick="1s",
            timeout_ms=20_000,
            timeline=[{"pause": "zookeeper/1", "at": "2s", "for": "11s"}],
            settle="1s",
        )
        if run.first_leader != "zookeeper/1" or run.server_of(0) != "zookeeper/1":
            continue
        newest = max(
            event.detail["version"]
            for client in (2, 3, 4)
            for event in run.reported(client, "wrote")
            if event.t_us < 12_990 * MS
        )
        old += any(event.detail["version"] < newest for event in run.reported(0, "read"))
        found_out += any(run.reported(0, "lost"))
        if min(old, found_out) > 1:
            break

    assert min(old, found_out) > 0


def test_nothing_is_written_through_a_leader_that_was_deposed() -> None:
    """A write that a deposed leader takes from its old clients is never done."""

    async def writes_on_waking(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1900)
        while True:
            path = f"/w-{await now_ms()}"
            result = await outcome_of(zk.create(path))
            await say("wrote", path=path, outcome=result)
            await (sleep(20) if result == "done" else connected())

    total: Counter[tuple[str, bool]] = Counter()
    for seed in range(60):
        run = play(
            writes_on_waking,
            writes_nothing,
            seed=seed,
            timeout_ms=10_000,
            timeline=[{"pause": "zookeeper/1", "at": "2s", "for": "4s"}],
            settle="2s",
        )
        if run.first_leader == "zookeeper/1" and run.server_of(0) == "zookeeper/1":
            total += fates(run)

    assert_promises_kept(total)
    assert total["may have happened", False] > 3


# --- time ------------------------------------------------------------------------------


def test_the_times_of_a_stat_are_those_of_the_clocks() -> None:
    """What is created now has a ctime of now, by the clock that every process reads."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        stat = (await zk.get("/a")).stat
        await say("created", ago_ms=await now_ms() - stat.ctime)

    assert abs(play(client).only(0, "created").detail["ago_ms"]) < 1000


def test_a_request_that_lands_late_is_an_action_until_it_has_landed() -> None:
    """It keeps the session of a member that died meanwhile; nothing is owed before that ends."""
    result = simulate(
        {
            "name": "late",
            "about": "A request lands when its member is dead, and its session lives on.",
            "clusters": {
                "main": {
                    "layout": "0.7",
                    "zookeeper": {"servers": 1},
                    "brokers": 1,
                    "topics": {"clicks": {"partitions_per_broker": 1}},
                }
            },
            "groups": {
                "billing": {
                    "consumers": 2,
                    "streams": {"clicks": 1},
                    "config": {"zookeeper.session.timeout.ms": 2000},
                }
            },
            "timeline": [
                {
                    "on": {"node": "billing/0", "purpose": "claim"},
                    "lose": "request",
                    "lands_after": "2300ms",
                },
                {"at": "1500ms", "crash": "billing/0"},
            ],
            "settle": "10s",
        }
    )
    progress = next(finding for finding in result.findings if finding.claim.name == "progress")

    assert all(effect.is_real for effect in result.effects)
    assert progress.verdict.value == "holds", progress.evidence
    [ended] = result.trace.of_kind(EventKind.FAULT_ENDED)
    assert ended.t_us > 3_300_000
    [expired] = result.trace.of_kind(EventKind.SESSION_EXPIRED)
    assert expired.t_us > 5_200_000
