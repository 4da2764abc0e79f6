"""What a client of the simulated ensemble sees in which order: replies, events, old data."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.zookeeper.programs import (
    MS,
    SERVERS,
    Run,
    S,
    Script,
    insist,
    notifications,
    play,
    say,
    staged,
)
from watchkeeper.model.actor.effects import connected, new_session, next_event, sleep
from watchkeeper.model.actor.errors import BadVersion, ConnectionLoss
from watchkeeper.model.actor.events import Fired, WatchEventType
from watchkeeper.model.actor.operations import (
    AddWatch,
    Create,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    SetData,
    Sync,
    ZooKeeper,
)
from watchkeeper.model.trace.kinds import EventKind

SEEDS = range(40)
some_seeds = pytest.mark.parametrize("seed", range(10))
any_size = pytest.mark.parametrize("servers", [1, 3])


def all_servers_lag(by: str, at: str = "500ms", lasts: str = "10s") -> list[dict[str, str]]:
    """A client that follows learns of everything so much later; the leader does not notice."""
    return [{"lag": server, "by": by, "at": at, "for": lasts} for server in SERVERS]


# --- one client ------------------------------------------------------------------------


@any_size
@some_seeds
def test_events_of_an_own_write_come_before_its_reply(servers: int, seed: int) -> None:
    """When a write is answered, the events it caused here are in the inbox already."""

    async def writer(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await AddWatch("/a", recursive=True)
        for effect, expected in (
            (zk.set("/a", b""), ["/a"]),
            (zk.create("/a/b"), ["/a/b"]),
            (zk.multi([Create("/a/c"), SetData("/a/b", b"")]), ["/a/c", "/a/b"]),
            (zk.delete("/a/b"), ["/a/b"]),
            (zk.pipelined([zk.set("/a", b""), zk.create("/a/d")]), ["/a", "/a/d"]),
        ):
            await effect
            await say(
                "heard",
                right=[notification.path for notification in await notifications()] == expected,
            )  # type: ignore[union-attr]
        await zk.get("/a", watch=True)
        await zk.set("/a", b"")
        await say("heard", right=len(await notifications()) == 1)

    run = play(writer, servers=servers, seed=seed)

    assert [event.detail["right"] for event in run.reported(0)] == [True] * 6


@any_size
@some_seeds
def test_a_batch_is_done_in_its_order(servers: int, seed: int) -> None:
    """In a batch each read sees the writes before it and none of those behind it."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        parts: list[Operation[Any]] = []
        for _ in range(10):
            parts += [zk.set("/a", b""), zk.get("/a")]
        answers = await zk.pipelined(parts)
        await say("sets", versions=list(answers[::2]))
        await say("gets", versions=[seen.version for seen in answers[1::2]])

    run = play(client, servers=servers, seed=seed)

    for what in ("sets", "gets"):
        assert run.only(0, what).detail["versions"] == list(range(1, 11))


# --- several clients -------------------------------------------------------------------


@any_size
@some_seeds
def test_what_several_threads_ask_is_answered_in_its_order(servers: int, seed: int) -> None:
    """A read is not answered before the write that was sent before it, and sees what it wrote."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await sleep(100_000)

    world = staged(client, servers=servers, seed=seed)
    heard: list[Any] = []

    def ask_all() -> None:
        client = world.nodes["clients/0"].client
        assert client is not None
        for number in range(3):
            client.request(SetData("/a", b"%d" % number), lambda *what: heard.append("set"))
            client.request(GetData("/a"), lambda answer, zxid: heard.append(answer.data))

    world.kernel.after(2 * S, lambda what: ask_all(), None)
    world.run()

    assert heard == ["set", b"0", "set", b"1", "set", b"2"]


@some_seeds
def test_what_several_threads_ask_fails_with_the_connection(seed: int) -> None:
    """Each of them hears of it, and may ask again over the next one."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        while True:
            await next_event()

    world = staged(client, seed=seed)
    heard: list[Any] = []

    def ask_all() -> None:
        client = world.nodes["clients/0"].client
        assert client is not None
        for number in range(3):
            client.request(
                SetData("/a", b"%d" % number), lambda answer, zxid: heard.append(answer)
            )
        client.lose("broken")

    world.kernel.after(2 * S, lambda what: ask_all(), None)
    world.run()

    assert [failure.kind for failure in heard] == [ConnectionLoss] * 3


def writes_on(path: str, times: int, pause_ms: int = 0) -> Script:
    async def writer(zk: ZooKeeper) -> None:
        await new_session()
        await insist(zk.create(path, b""))
        await sleep(1000)
        for _ in range(times):
            await insist(zk.set(path, b""))
            if pause_ms:
                await sleep(pause_ms)

    return writer


@pytest.mark.parametrize(
    "lag", [[], all_servers_lag("5ms", at="900ms", lasts="200ms")], ids=["prompt", "lagging"]
)
def test_no_data_is_read_that_is_newer_than_an_event_to_come(lag: list[Any]) -> None:
    """A client that watches a znode and reads it newer has the event in its inbox by then."""

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1000)
        for _ in range(100):
            watched = await zk.get("/a", watch=True)
            while True:
                seen = await zk.get("/a")
                heard = await notifications()
                if seen.version > watched.version:
                    await say("newer", announced=Fired(WatchEventType.CHANGED, "/a") in heard)
                if heard or seen.version > watched.version:
                    break
            await say("heard first", count=len(heard))

    announced = []
    for seed in range(12):
        settle = "200ms" if lag else "1200ms"
        run = play(writes_on("/a", 60), reader, seed=seed, timeline=lag, settle=settle)
        announced += [event.detail["announced"] for event in run.reported(1, "newer")]

    assert len(announced) > 100, "otherwise the test shows nothing"
    assert all(announced)


@pytest.mark.parametrize("lag", [[], all_servers_lag("50ms")], ids=["prompt", "lagging"])
@some_seeds
def test_a_client_reads_its_own_writes(lag: list[Any], seed: int) -> None:
    """What a client has written it never reads older, on whichever server it is."""

    async def busybody(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1000)
        for _ in range(20):
            version = await zk.set("/a", b"mine")
            await say("read", right=(await zk.get("/a")).version >= version)

    run = play(writes_on("/a", 40), busybody, busybody, seed=seed, timeline=lag, settle="3s")

    read = [event.detail["right"] for client in (1, 2) for event in run.reported(client)]
    assert read == [True] * 40


def test_time_never_runs_backwards_for_a_client() -> None:
    """A client that moves to a server which is behind never reads older data than before."""

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(900)
        while True:
            try:
                await say("read", version=(await zk.get("/a")).version)
                await sleep(10)
            except ConnectionLoss:
                await connected()

    moves = [{"disconnect": "clients/1", "at": f"{at}ms", "for": "20ms"} for at in (1100, 1400)]
    moved = 0
    for seed in SEEDS:
        timeline = [*moves, *all_servers_lag("150ms", lasts="1500ms")]
        run = play(writes_on("/a", 60, 10), reader, seed=seed, timeline=timeline, settle="1s")
        versions = [event.detail["version"] for event in run.reported(1, "read")]
        assert versions == sorted(versions)
        assert versions[-1] > 20
        moved += len(
            {event.detail["at"] for event in run.events(EventKind.CONNECTED, node="clients/1")}
        )

    assert moved > len(SEEDS), "some clients have moved to another server"


@some_seeds
def test_writes_of_many_clients_have_one_order(seed: int) -> None:
    """Sequence numbers grow as zxids do, a client that asked and wherever."""

    async def creator(zk: ZooKeeper) -> None:
        await new_session()
        for _ in range(10):
            await zk.create("/s-", sequential=True)

    run = play(creator, creator, creator, seed=seed, settle="1s")

    paths = sorted(path for path in run.tree.nodes if path.startswith("/s-"))
    assert [int(path[-10:]) for path in paths] == list(range(30))
    zxids = [run.tree.nodes[path].czxid for path in paths]
    assert zxids == sorted(zxids)


@some_seeds
def test_a_set_that_names_a_version_loses_no_update(seed: int) -> None:
    """Of several that set the same version one succeeds: counting that way loses nothing."""

    async def counter(zk: ZooKeeper) -> None:
        await new_session()
        done = 0
        while done < 10:
            seen = await insist(Exists("/a"))
            if seen is None:
                await sleep(5)
                continue
            seen = await zk.get("/a")
            try:
                count = int(seen.data or b"0") + 1
                await zk.set("/a", str(count).encode(), version=seen.version)
                done += 1
            except BadVersion:
                await say("lost the race")

    async def creator(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a", b"0")

    run = play(creator, counter, counter, counter, seed=seed, settle="2s")

    assert run.tree.nodes["/a"].data == b"30"
    assert any(run.reported(client, "lost the race") for client in (1, 2, 3))


# --- old data --------------------------------------------------------------------------


async def write_once(zk: ZooKeeper) -> None:
    """Create a znode at the beginning and set it at 1 s."""
    await new_session()
    await zk.create("/a", b"old")
    await sleep(1000)
    await zk.set("/a", b"new")
    await say("acknowledged")
    await sleep(20_000)


def reads_after(*asks: Operation[Any]) -> Script:
    """Ask these at 1.5 s; say the data that the last one brings."""

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1500)
        for effect in asks:
            answer = await effect
        await say("read", data=answer.data.decode())

    return reader


def data_read(*asks: Operation[Any]) -> list[tuple[str, str]]:
    """What was read from a leader or a follower that learns everything 2 s later."""
    read = []
    for seed in SEEDS:
        run = play(
            write_once,
            reads_after(*asks),
            seed=seed,
            timeline=all_servers_lag("2s", lasts="1s"),
            settle="3s",
        )
        server = "leader" if run.server_of(1) == run.first_leader else "follower"
        read.append((server, run.only(1, "read").detail["data"]))
    return read


def test_a_follower_that_lags_gives_old_data() -> None:
    """A write that was acknowledged is not seen on a follower that lags, but on the leader."""
    assert set(data_read(GetData("/a"))) == {("leader", "new"), ("follower", "old")}


def test_a_sync_before_the_read_brings_the_new_data() -> None:
    """After a sync a follower gives what had been acknowledged before it."""
    assert set(data_read(Sync("/a"), GetData("/a"))) == {("leader", "new"), ("follower", "new")}


def test_a_sync_before_the_read_in_one_batch_brings_the_new_data() -> None:
    """Sync and read may be requested at once: the read waits for the sync."""

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1500)
        _, seen = await zk.pipelined([Sync("/a"), GetData("/a")])
        await say("read", data=seen.data.decode())

    read = set()
    for seed in SEEDS:
        run = play(
            write_once, reader, seed=seed, timeline=all_servers_lag("2s", lasts="1s"), settle="3s"
        )
        read.add(run.only(1, "read").detail["data"])

    assert read == {"new"}


def test_old_data_is_read_now_and_then_when_nothing_is_wrong() -> None:
    """Also without a fault a read after another's acknowledged write may be old; few are."""

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1000)
        while True:
            await say("asks")
            await say("read", version=(await zk.get("/a")).version)

    old = new = 0
    for seed in SEEDS:
        run = play(writes_on("/a", 30), reader, seed=seed, timeline=[], settle="1100ms")
        written = run.events(EventKind.RESPONSE, node="clients/0", op="set")
        acknowledged = [(event.t_us, event.detail["answer"]) for event in written]
        events = list(run.reported(1))
        for request, read in zip(events[::2], events[1::2], strict=False):
            newest = max((v for at, v in acknowledged if at <= request.t_us), default=0)
            old += read.detail["version"] < newest
            new += read.detail["version"] >= newest

    assert 0 < old < new / 5


def when_heard(run: Run, client: int) -> list[tuple[int, str]]:
    """Milliseconds and words of the events that a client has heard."""
    return [
        (event.t_us // MS, event.detail["what"])
        for event in run.events(EventKind.NOTIFIED, node=f"clients/{client}")
        if "path" in event.detail
    ]


@pytest.mark.parametrize(
    "effect",
    [GetData("/a", watch=True), Exists("/a", watch=True), AddWatch("/a")],
    ids=lambda effect: type(effect).__name__,
)
def test_a_watch_that_is_left_on_old_data_fires_when_the_server_catches_up(
    effect: Operation[Any],
) -> None:
    """A client that reads old data and leaves a watch hears of what it has not read yet."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1500)
        await effect
        await sleep(20_000)

    heard = {"leader": 0, "follower": 0}
    for seed in SEEDS:
        run = play(
            write_once,
            watcher,
            seed=seed,
            timeline=all_servers_lag("2s", lasts="1s"),
            settle="5s",
        )
        if run.server_of(1) == run.first_leader:
            assert when_heard(run, 1) == []
            heard["leader"] += 1
        else:
            ((at_ms, what),) = when_heard(run, 1)
            assert (2990 <= at_ms <= 3050, what) == (True, "changed")
            heard["follower"] += 1

    assert min(heard.values()) > 0


def test_a_watch_that_is_left_again_on_old_data_fires_when_the_server_catches_up() -> None:
    """The same for a client of Java that leaves its watches again on a server that lags."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await insist(GetChildren("/"))
        await sleep(100)
        await zk.get("/a", watch=True)
        await sleep(20_000)

    missed = 0
    for seed in SEEDS:
        run = play(
            write_once,
            watcher,
            seed=seed,
            resends_watches=True,
            timeline=[
                {"disconnect": "clients/1", "at": "990ms", "for": "100ms"},
                *all_servers_lag("2s", lasts="1s"),
            ],
            settle="8s",
        )
        missed += when_heard(run, 1) == []

    assert missed == 0


def racing_batch() -> dict[tuple[str, bool, str], int]:
    """How often which data was read, whether an event came, and what the data is in the end."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a", b"old")
        await zk.create("/b")
        await sleep(100)
        seen, *_ = await zk.pipelined([zk.get("/a", watch=True), zk.set("/b", b""), zk.get("/b")])
        notification = await next_event(1000)
        end = await zk.get("/a")
        await say(
            "ends", read=seen.data.decode(), heard=notification is not None, end=end.data.decode()
        )

    async def writer(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(101)
        await zk.set("/a", b"new")
        await sleep(5000)

    counted: dict[tuple[str, bool, str], int] = {}
    for seed in range(100):
        event = play(watcher, writer, seed=seed, settle="2s").only(0, "ends").detail
        key = event["read"], event["heard"], event["end"]
        counted[key] = counted.get(key, 0) + 1
    return counted


def test_an_event_that_comes_while_a_batch_is_under_way_is_not_lost() -> None:
    """A client that read old data in a batch with a watch hears of the
    change that came behind."""
    counted = racing_batch()

    assert counted["old", True, "new"] > 0
    assert ("old", False, "new") not in counted


def test_the_event_of_an_own_write_in_the_same_batch_is_not_lost() -> None:
    """A batch that leaves a watch and then changes the znode brings an event."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await zk.pipelined([zk.get("/a", watch=True), zk.set("/a", b"")])
        await say("heard", count=len(await notifications(100)))

    assert play(client).only(0, "heard").detail["count"] == 1


def test_a_note_that_an_own_read_has_overtaken_is_dropped() -> None:
    """A read that leaves the watch again removes the older event of it, and no other."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/a")
        await zk.get("/a", watch=True)
        await zk.get_children("/a", watch=True)
        await zk.set("/a", b"")
        await zk.create("/a/b")
        await zk.get("/a", watch=True)
        heard = [notification.what for notification in await notifications(100)]  # type: ignore[union-attr]
        await say("heard", only_children=heard == [WatchEventType.CHILDREN])

    assert play(client).only(0, "heard").detail["only_children"]


# --- what a sync promises --------------------------------------------------------------


def test_a_follower_that_is_cut_off_from_its_leader_does_not_answer_a_sync() -> None:
    """A sync goes to the leader; where that cannot be reached the client waits in vain."""

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(2000)
        try:
            await zk.sync("/a")
            await say("synced", data=(await zk.get("/a")).data.decode())
        except ConnectionLoss:
            await say("lost")

    async def writer(zk: ZooKeeper) -> None:
        await new_session()
        await insist(zk.create("/a", b"old"))
        await sleep(1500)
        await insist(zk.set("/a", b"new"))
        await sleep(20_000)

    cut = [{"partition": "zookeeper/2", "from": "zookeeper", "at": "1s", "for": "1800ms"}]
    for seed in SEEDS:
        run = play(writer, reader, seed=seed, timeout_ms=10_000, timeline=cut, settle="5s")
        if run.first_leader != "zookeeper/2" and run.server_of(1) == "zookeeper/2":
            assert [event.detail.get("data", "lost") for event in run.reported(1)] in (
                ["lost"],
                ["new"],
            )


def test_a_follower_that_is_cut_off_gives_what_it_had_received_before() -> None:
    """A cut keeps what comes later from a follower, not what it had taken over long ago."""

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(1500)
        await say("read", there=await zk.exists("/a") is not None)
        await sleep(20_000)

    cut = [{"partition": "zookeeper/2", "from": "zookeeper", "at": "1s", "for": "1s"}]
    there = []
    for seed in SEEDS:
        run = play(write_once, reader, seed=seed, timeout_ms=10_000, timeline=cut, settle="5s")
        if run.first_leader != "zookeeper/2" and run.server_of(1) == "zookeeper/2":
            there.append(run.only(1, "read").detail["there"])

    assert there
    assert all(there)


# --- one order of everything -----------------------------------------------------------


def test_every_client_hears_of_changes_in_the_order_of_their_zxids() -> None:
    """What one client hears comes in the order of zxids, a client that made the changes."""

    async def creator(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(100)
        for _ in range(20):
            await zk.create("/s-", sequential=True)

    async def listener(zk: ZooKeeper) -> None:
        await new_session()
        await AddWatch("/", recursive=True)
        while True:
            await next_event()

    for seed in SEEDS:
        run = play(creator, creator, listener, listener, seed=seed, settle="1s")
        for client in (2, 3):
            heard = [
                event.detail["path"]
                for event in run.events(EventKind.NOTIFIED, node=f"clients/{client}")
            ]
            assert heard == [f"/s-{number:010d}" for number in range(40)]


def test_many_watchers_delay_the_reply_of_the_writer() -> None:
    """All events are sent before the writer's reply, so that a herd costs the writer time."""

    async def watcher(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(500)
        await insist(GetChildren("/p", watch=True))
        await sleep(20_000)

    async def writer(zk: ZooKeeper) -> None:
        await new_session()
        await zk.create("/p")
        await sleep(1000)
        await say("before")
        await zk.create("/p/c")
        await say("after")

    def takes_us(watchers: int) -> int:
        run = play(writer, *[watcher] * watchers, servers=1, settle="2s")
        return run.only(0, "after").t_us - run.only(0, "before").t_us

    assert takes_us(100) > takes_us(0) + 100 * 20


def test_a_multi_is_seen_whole_or_not_at_all() -> None:
    """No client ever sees one half of a multi, on any server."""

    async def writer(zk: ZooKeeper) -> None:
        await new_session()
        await zk.multi([Create("/a", b"0"), Create("/b", b"0")])
        await sleep(100)
        for number in range(1, 60):
            data = str(number).encode()
            await zk.multi([SetData("/a", data), SetData("/b", data)])

    async def reader(zk: ZooKeeper) -> None:
        await new_session()
        await sleep(100)
        for _ in range(100):
            a, b = await zk.pipelined([GetData("/a"), GetData("/b")])
            await say("read", a=int(a.data), b=int(b.data))

    pairs = []
    for seed in range(20):
        run = play(writer, reader, seed=seed, settle="1s")
        pairs += [(event.detail["a"], event.detail["b"]) for event in run.reported(1)]

    assert len(set(pairs)) > 20
    assert all(a == b for a, b in pairs)


def test_a_failed_multi_is_seen_by_no_client() -> None:
    """A multi that failed on the leader leaves nothing on any server."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        await AddWatch("/", recursive=True)
        failed = (await zk.pipelined([Multi((Create("/a"), SetData("/nope", b"")))]))[0]
        await say("ends", error=failed.name, heard=len(await notifications(100)))
        await say("there", there=await zk.exists("/a") is not None)

    run = play(client)

    assert dict(run.only(0, "ends").detail) == {"what": "ends", "error": "NoNode", "heard": 0}
    assert run.only(0, "there").detail["there"] is False
