"""Consumers and brokers that live inside this very process, against a real ZooKeeper."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import count, pairwise
from time import monotonic, sleep
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.connection import ConnectionHandler

from tests import HOME
from tests.support.live_zookeeper import LONG_MS, connected, disconnect, until
from tests.support.patience import PATIENCE_S
from watchkeeper import Broker, Claim, Consumer, Ended, NotOwned, Partition, Program, run_live
from watchkeeper.model.broker.administrator import Administrator, administrator
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.embed.member import FIRST_PAUSE_S, Member
from watchkeeper.real.proxy.proxy import Proxy
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

NUMBERS = count(1)
CONFIG = {"zookeeper.session.timeout.ms": LONG_MS, "auto.commit.interval.ms": 60_000}
TOPICS = {"clicks": 1}
ALL = tuple(Partition("clicks", f"7-{number}") for number in range(4))
SHORT_MS = 6000
"""A session that is to expire: kazoo finds the silence two seconds before."""


class Application:
    """What an application has heard, and what it reads now."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[Partition, ...]]] = []
        self.reads: dict[Partition, int | None] = {}
        self.threads: set[str] = set()
        """The names of the threads in which it heard it."""

    def start(self, claims: tuple[Claim, ...]) -> None:
        self.threads.add(threading.current_thread().name)
        self.told.append(("claimed", tuple(claim.partition for claim in claims)))
        self.reads.update((claim.partition, claim.offset) for claim in claims)

    def stop(self, partitions: tuple[Partition, ...]) -> None:
        self.threads.add(threading.current_thread().name)
        self.told.append(("released", partitions))
        for partition in partitions:
            del self.reads[partition]

    def member(self, hosts: str, **more: Any) -> Consumer:
        given = {"group": "billing", "topics": TOPICS, "config": CONFIG, **more}
        given.setdefault("on_partitions_assigned", self.start)
        given.setdefault("on_partitions_revoked", self.stop)
        return Consumer(hosts, **given)


@pytest.fixture
def app() -> Application:
    return Application()


@pytest.fixture
def other_app() -> Application:
    return Application()


@pytest.fixture
def chroot() -> str:
    """Every test has a place of its own, two levels deep."""
    return f"/embedding/{next(NUMBERS)}"


@pytest.fixture
def hosts(zookeeper: Ensemble, chroot: str) -> str:
    return f"{zookeeper.hosts}{chroot}"


@pytest.fixture
def direct(zookeeper: Ensemble) -> Iterator[KazooClient]:
    client = connected(zookeeper.hosts)
    yield client
    disconnect(client)


@pytest.fixture
def broker(hosts: str) -> Iterator[Broker]:
    with Broker(hosts, id=7, host="one.example", port=9092, topics={"clicks": 4}) as broker:
        broker.ready()
        yield broker


@pytest.fixture
def proxy(zookeeper: Ensemble) -> Iterator[Proxy]:
    with Proxy(zookeeper.addresses) as proxy:
        yield proxy


def left_kazoo_alone(*apps: Application) -> bool:
    """No callback ran in the thread in which kazoo reads, which must not be kept."""
    assert ConnectionHandler.zk_loop.__name__ == "zk_loop"  # threads are named after it
    return not any("zk_loop" in name for app in apps for name in app.threads)


# --- sharing -----------------------------------------------------------------------------


@pytest.mark.usefixtures("broker")
def test_two_share_and_one_takes_over(
    hosts: str, app: Application, other_app: Application
) -> None:
    with app.member(hosts) as first:
        first.ready()
        until(lambda: set(app.reads) == set(ALL))
        with other_app.member(hosts) as second:
            until(lambda: len(other_app.reads) == 2)
            assert set(app.reads) | set(other_app.reads) == set(ALL)
            assert len(app.reads) == 2
        assert other_app.reads == {}
        assert other_app.told[-1][0] == "released"
        assert second.session == "closed"
        until(lambda: set(app.reads) == set(ALL))
        status = first.status
        assert set(status.owned) == set(ALL)
        assert status.rebalances >= 3
        assert status.attempts == status.rebalances + status.failed_attempts
        assert (status.session, status.sessions) == ("connected", 1)
        assert status.consumer_id.startswith("billing_")
    assert app.reads == {}
    assert first.ended == Ended("left")
    assert left_kazoo_alone(app, other_app)


@pytest.mark.usefixtures("broker")
def test_a_claim_stands_until_the_callback_has_returned(
    hosts: str, chroot: str, direct: KazooClient, app: Application, other_app: Application
) -> None:
    owners = f"{chroot}/consumers/billing/owners/clicks"
    stood: list[bool] = []

    def stop(partitions: tuple[Partition, ...]) -> None:
        sleep(0.3)
        names = set(direct.get_children(owners))
        stood.append({partition.name for partition in partitions} <= names)
        assert set(other_app.reads) & set(partitions) == set()
        app.stop(partitions)

    with app.member(hosts, on_partitions_revoked=stop, slow_after_s=0.1) as first:
        first.ready()
        with other_app.member(hosts):
            until(lambda: len(other_app.reads) == 2)
    assert stood == [True, True]
    assert first.status.slow_callbacks >= 2
    assert first.status.longest_callback_s > 0.3
    assert first.status.callback_errors == 0


def test_claims_say_where_to_read(hosts: str, broker: Broker) -> None:
    heard: list[Claim] = []
    with Consumer(
        hosts,
        group="billing",
        topics={"clicks": 2},
        on_partitions_assigned=heard.extend,
        config=CONFIG,
    ):
        until(lambda: len(heard) == 4)
    assert {claim.address for claim in heard} == {"one.example:9092"}
    assert sorted(claim.stream for claim in heard) == [0, 0, 1, 1]
    assert {claim.offset for claim in heard} == {None}


def test_topics_come_and_go(hosts: str, broker: Broker, app: Application) -> None:
    with app.member(hosts, topics=None, white_list="cl.*") as consumer:
        until(lambda: len(app.reads) == 4)
        broker.set_topic("clicks", 6)
        until(lambda: len(app.reads) == 6)
        broker.set_topic("clones", 1)
        until(lambda: len(app.reads) == 7)
        broker.set_topic("clones", 0)
        until(lambda: len(app.reads) == 6)
    assert consumer.status.callback_errors == 0


@pytest.mark.parametrize("variant", ["kafka_07", "documented"])
@pytest.mark.usefixtures("broker")
def test_other_variants_live_too(hosts: str, variant: str, app: Application) -> None:
    with app.member(hosts, variant=variant) as consumer:
        until(lambda: len(app.reads) == 4)
        consumer.commit({ALL[0]: 10})
    with app.member(hosts, variant=variant):
        until(lambda: len(app.reads) == 4)
        expected = 9 if variant == "documented" else 10
        assert app.reads[ALL[0]] == expected


# --- offsets -----------------------------------------------------------------------------


@pytest.mark.usefixtures("broker")
def test_a_commit_is_written_when_it_comes_back(
    hosts: str, chroot: str, direct: KazooClient, app: Application
) -> None:
    with app.member(hosts) as consumer:
        until(lambda: len(app.reads) == 4)
        for at in (5, 6, 900):
            assert consumer.commit({ALL[1]: at}) is True
            path = f"{chroot}/consumers/billing/offsets/clicks/7-1"
            assert direct.get(path)[0] == str(at).encode()
        assert consumer.positions[ALL[1]] == 900
        assert consumer.status.commits == 3
        assert consumer.status.last_commit is not None
        consumer.store_offsets({ALL[2]: 3, ("clicks", "7-3"): 4})  # type: ignore[dict-item]
        consumer.commit()
        assert consumer.positions == {ALL[0]: None, ALL[1]: 900, ALL[2]: 3, ALL[3]: 4}
        with pytest.raises(ValueError, match="never goes back"):
            consumer.store_offsets({ALL[1]: 899})
        with pytest.raises(NotOwned, match="clicks/9-9 is not owned by this member"):
            consumer.commit({ALL[1]: 901, Partition("clicks", "9-9"): 1})
        assert consumer.positions[ALL[1]] == 900
    with pytest.raises(NotOwned):
        consumer.commit({ALL[1]: 902})


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("by_itself", [True, False])
def test_positions_survive_a_restart(hosts: str, app: Application, *, by_itself: bool) -> None:
    config = {**CONFIG, "auto.commit.enable": by_itself}

    def stop(partitions: tuple[Partition, ...]) -> None:
        worker.start()
        worker.join(PATIENCE_S)
        assert first.commit({ALL[3]: 77}) is False
        app.stop(partitions)

    def commit() -> None:
        heard.append(first.commit({ALL[1]: 22}))

    heard: list[bool] = []
    worker = threading.Thread(target=commit)

    with app.member(hosts, config=config, on_partitions_revoked=stop) as first:
        until(lambda: len(app.reads) == 4)
        first.store_offsets({ALL[0]: 11})
    assert heard == [False]
    with app.member(hosts):
        until(lambda: len(app.reads) == 4)
        assert app.reads == {ALL[0]: 11, ALL[1]: 22, ALL[2]: None, ALL[3]: 77}


@pytest.mark.usefixtures("broker")
def test_the_clock_commits(hosts: str, app: Application) -> None:
    config = {**CONFIG, "auto.commit.interval.ms": 100}
    with app.member(hosts, config=config) as consumer:
        until(lambda: len(app.reads) == 4)
        assert consumer.status.commits == 0
        consumer.store_offsets({ALL[0]: 1})
        until(lambda: consumer.status.commits >= 2)


# --- connections and sessions ------------------------------------------------------------


@pytest.mark.usefixtures("broker")
def test_reading_stops_while_the_connection_is_down(
    proxy: Proxy, chroot: str, app: Application
) -> None:
    effects: Counter[str] = Counter()
    with app.member(f"{proxy.hosts_of('me')}{chroot}") as consumer:
        until(lambda: len(app.reads) == 4)
        consumer.store_offsets({ALL[0]: 5})
        proxy.disconnect("me", lambda what, n: effects.update({what: n}), for_s=2 * PATIENCE_S)
        until(lambda: app.reads == {})
        assert [what for what, _ in app.told] == ["claimed", "released"]
        assert consumer.session == "suspended"
        proxy._client_route("me").refusals.clear()
        until(lambda: len(app.reads) == 4)
        assert app.reads[ALL[0]] == 5
        status = consumer.status
        assert (status.session, status.sessions) == ("connected", 1)
        consumer.commit({ALL[0]: 6})
    assert effects["connections broken"] == 1
    assert left_kazoo_alone(app)


@pytest.mark.usefixtures("broker")
def test_silence_is_found_before_the_session_ends(
    proxy: Proxy, chroot: str, zookeeper: Ensemble, app: Application, other_app: Application
) -> None:
    """Nothing passes any more: reading stops in time, and another takes over afterwards."""
    config = {**CONFIG, "zookeeper.session.timeout.ms": SHORT_MS}
    with app.member(f"{proxy.hosts_of('me')}{chroot}", config=config) as consumer:
        until(lambda: len(app.reads) == 4)
        with other_app.member(f"{zookeeper.hosts}{chroot}"):
            until(lambda: len(other_app.reads) == 2)
            cut = proxy.cut("me", lambda what, n: None)
            until(lambda: app.reads == {})
            assert len(other_app.reads) == 2
            until(lambda: len(other_app.reads) == 4)
            cut.end()
            until(lambda: len(app.reads) == 2)
            until(lambda: len(other_app.reads) == 2)
            assert consumer.status.sessions == 2
    assert left_kazoo_alone(app, other_app)


@pytest.mark.usefixtures("broker")
def test_an_expired_session_is_followed_by_another(
    proxy: Proxy, zookeeper: Ensemble, chroot: str, app: Application
) -> None:
    with app.member(f"{proxy.hosts_of('me')}{chroot}") as consumer:
        until(lambda: len(app.reads) == 4)
        name = consumer.status.consumer_id
        session = proxy.session_of("me")
        assert session is not None
        killer = KazooClient(zookeeper.hosts, client_id=(session.number, session.password))
        killer.start(timeout=PATIENCE_S)
        killer.stop()
        killer.close()
        until(lambda: consumer.status.sessions == 2)
        until(lambda: len(app.reads) == 4)
        assert consumer.status.consumer_id == name
        consumer.commit({ALL[0]: 3})
    assert [what for what, _ in app.told][:3] == ["claimed", "released", "claimed"]


def test_it_waits_for_a_server_and_can_be_closed_without_one(app: Application) -> None:
    consumer = app.member("127.0.0.1:1").start()
    with pytest.raises(TimeoutError, match="its session is connecting"):
        consumer.ready(0.2)
    assert consumer.session == "connecting"
    assert consumer.close(0.2) is False
    assert consumer.ended == Ended("halted", failed=True)


@pytest.mark.usefixtures("broker")
def test_a_consumer_that_cannot_leave_is_dropped(
    proxy: Proxy, chroot: str, app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = app.member(f"{proxy.hosts_of('me')}{chroot}").start()
    until(lambda: len(app.reads) == 4)
    proxy.disconnect("me", lambda what, n: None, for_s=60)
    until(lambda: consumer.session == "suspended")
    assert consumer.close(0.5) is False
    assert app.reads == {}
    assert "could not leave within 0.5 s (session suspended)" in caplog.text


# --- leaving -----------------------------------------------------------------------------


@pytest.mark.usefixtures("broker")
def test_leaving_leaves_nothing_behind(
    hosts: str, chroot: str, direct: KazooClient, app: Application
) -> None:
    threads = set(threading.enumerate())
    consumer = app.member(hosts).start()
    until(lambda: len(app.reads) == 4)
    assert len(direct.get_children(f"{chroot}/consumers/billing/ids")) == 1
    assert consumer.close() is True
    assert direct.get_children(f"{chroot}/consumers/billing/ids") == []
    assert direct.get_children(f"{chroot}/consumers/billing/owners/clicks") == []
    assert set(threading.enumerate()) <= threads
    assert consumer.close() is True
    with pytest.raises(RuntimeError, match="started before"):
        consumer.start()


@pytest.mark.usefixtures("broker")
def test_a_callback_may_leave(hosts: str, app: Application) -> None:
    def start(claims: tuple[Claim, ...]) -> None:
        app.start(claims)
        assert consumer.close() is False

    consumer = app.member(hosts, on_partitions_assigned=start).start()
    assert consumer.wait_ended(PATIENCE_S) == Ended("left")
    assert app.reads == {}


@pytest.mark.usefixtures("broker")
def test_interrupted_it_leaves(hosts: str, app: Application) -> None:
    consumer = app.member(hosts)

    def interrupt() -> None:
        until(lambda: len(app.reads) == 4)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup has it ignored
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt), consumer:
            consumer.wait_ended(PATIENCE_S)
    finally:
        signal.signal(signal.SIGINT, before)
    assert app.reads == {}
    assert consumer.ended == Ended("left")


# --- callbacks that fail -----------------------------------------------------------------


@pytest.mark.usefixtures("broker")
def test_a_callback_that_raises_has_returned(
    hosts: str, app: Application, other_app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(argument: Any) -> None:
        raise OSError("the disk is full")

    with app.member(hosts, on_partitions_assigned=fail, on_partitions_revoked=fail) as consumer:
        until(lambda: consumer.status.callback_errors == 1)
        with other_app.member(hosts):
            until(lambda: len(other_app.reads) == 2)
        until(lambda: len(consumer.owned) == 4)
    assert consumer.status.callback_errors == 4
    assert consumer.ended == Ended("left")
    assert "billing/consumer: on_partitions_revoked raised" in caplog.text
    assert "the disk is full" in caplog.text


@pytest.mark.usefixtures("broker")
def test_a_callback_that_raises_may_end_the_membership(
    hosts: str, app: Application, other_app: Application
) -> None:
    def fail(claims: tuple[Claim, ...]) -> None:
        raise OSError("the disk is full")

    with other_app.member(hosts):
        until(lambda: len(other_app.reads) == 4)
        member = app.member(
            hosts, on_partitions_assigned=fail, on_partitions_revoked=None, leave_on_error=True
        )
        with member as consumer:
            assert consumer.wait_ended(PATIENCE_S) == Ended("left")
        until(lambda: len(other_app.reads) == 4)


@pytest.mark.usefixtures("broker")
def test_a_callback_that_never_returns_is_given_up_at_the_end(
    hosts: str, app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()
    consumer = app.member(
        hosts, on_partitions_revoked=lambda gone: release.wait(), slow_after_s=0.1
    )
    consumer.start()
    until(lambda: len(app.reads) == 4)
    assert consumer.close(0.5) is False
    assert "on_partitions_revoked has not returned for 0.100 s" in caplog.text
    assert "a callback does not return; its thread is left behind" in caplog.text
    release.set()


# --- in an event loop --------------------------------------------------------------------


@pytest.mark.usefixtures("broker")
def test_in_an_event_loop(hosts: str, app: Application) -> None:
    async def start(claims: tuple[Claim, ...]) -> None:
        await asyncio.sleep(0.01)
        loops.append(asyncio.get_running_loop())
        app.start(claims)

    async def stop(partitions: tuple[Partition, ...]) -> None:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.01)
        await consumer.acommit({ALL[2]: 30})
        app.stop(partitions)

    async def main() -> None:
        nonlocal consumer
        async with app.member(
            hosts, on_partitions_assigned=start, on_partitions_revoked=stop
        ) as consumer:
            await consumer.aready()
            while len(app.reads) < 4:
                await asyncio.sleep(0.01)
            await consumer.acommit({ALL[0]: 10})
            with pytest.raises(RuntimeError, match=r"use `await consumer\.acommit"):
                consumer.commit({ALL[0]: 11})
            with pytest.raises(RuntimeError, match=r"use `await consumer\.aclose"):
                consumer.close()
            assert await consumer.await_ended(0.01) is None
        assert app.reads == {}
        assert set(loops) == {asyncio.get_running_loop()}

    loops: list[asyncio.AbstractEventLoop] = []
    consumer: Any = None
    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert consumer.ended == Ended("left")
    with app.member(hosts):
        until(lambda: len(app.reads) == 4)
        assert (app.reads[ALL[0]], app.reads[ALL[2]]) == (10, 30)


@pytest.mark.usefixtures("broker")
def test_a_cancelled_task_leaves(hosts: str, app: Application) -> None:
    async def serve() -> None:
        async with app.member(hosts):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(serve())
        while len(app.reads) < 4:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert app.reads == {}


def test_coroutine_functions_need_a_loop(hosts: str) -> None:
    async def start(claims: tuple[Claim, ...]) -> None:
        raise AssertionError("it is never called")

    consumer = Consumer(hosts, group="billing", topics=TOPICS, on_partitions_assigned=start)
    with pytest.raises(TypeError, match="use `async with Consumer"):
        consumer.start()


# --- brokers, and programs of one's own --------------------------------------------------


def test_a_broker_stands_while_it_lives(
    hosts: str, chroot: str, direct: KazooClient, broker: Broker
) -> None:
    assert broker.status.is_registered
    assert direct.get(f"{chroot}/brokers/ids/7")[0].endswith(b"one.example:9092")
    assert direct.get(f"{chroot}/brokers/topics/clicks/7")[0] == b"4"
    with Broker(hosts, id=7, host="two.example", port=9092) as rival:
        ended = rival.wait_ended(PATIENCE_S)
        assert ended is not None
        assert ended.failed
        with pytest.raises(RuntimeError, match=r"broker id 7 is in use by one\.example:9092"):
            rival.ready()
    assert broker.close() is True
    assert direct.get_children(f"{chroot}/brokers/ids") == []


def test_a_broker_of_the_other_layout(
    zookeeper: Ensemble, chroot: str, direct: KazooClient
) -> None:
    with Broker(f"{zookeeper.hosts}{chroot}", id=3, host="h", layout="0.8") as broker:
        broker.ready()
        assert b'"port":9092' in direct.get(f"{chroot}/brokers/ids/3")[0]


def test_the_other_layout(
    zookeeper: Ensemble, hosts: str, app: Application, other_app: Application
) -> None:
    replicas = tuple((number, (3,)) for number in range(3))
    me = Administrator("administrator", (("clicks", TopicAssignment(replicas)),))
    logger = logging.getLogger("watchkeeper.administrator")
    config = {**CONFIG, "partition.assignment.strategy": "roundrobin"}
    with (
        Broker(hosts, id=3, host="h", layout="0.8"),
        Member(administrator(me), hosts, name="administrator", logger=logger),
        app.member(hosts, layout="0.8", config=config),
        other_app.member(hosts, layout="0.8", config=config),
    ):
        until(lambda: (len(app.reads), len(other_app.reads)) in {(1, 2), (2, 1)})
        assert {str(partition) for partition in (*app.reads, *other_app.reads)} == {
            "clicks/0",
            "clicks/1",
            "clicks/2",
        }


def test_a_program_of_ones_own_runs_live(hosts: str, chroot: str, direct: KazooClient) -> None:
    async def turn(zk: Any, me: Any, state: Any) -> Any:
        from watchkeeper.model.actor.effects import new_session

        await new_session()
        await zk.create("/hello", me.encode())
        return Ended("done")

    assert run_live(Program(turn, "world", None), hosts) == Ended("done")
    assert direct.get(f"{chroot}/hello")[0] == b"world"


def test_what_a_program_raises_is_raised(hosts: str) -> None:
    async def turn(zk: Any, me: Any, state: Any) -> Any:
        raise ZeroDivisionError("by nought")

    with pytest.raises(ZeroDivisionError):
        run_live(Program(turn, None, None), hosts)


def test_turns_that_fail_are_not_hurried(
    hosts: str, app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    began_s: list[float] = []

    async def turn(zk: Any, me: Any, state: Any) -> Any:
        from watchkeeper.model.actor.effects import new_session

        began_s.append(monotonic())
        await new_session()
        await zk.delete("/never-there")

    with app.member(hosts, program=Program(turn, None, None)) as consumer:
        until(lambda: len(began_s) >= 3)
        assert all(late - early >= FIRST_PAUSE_S for early, late in pairwise(began_s))
        assert consumer.close(0.1) is False
    assert EventKind.TURN_FAILED in caplog.text


@pytest.mark.usefixtures("broker")
def test_a_consumer_of_ones_own_has_callbacks_too(hosts: str, app: Application) -> None:
    async def turn(zk: Any, me: Any, state: Any) -> Any:
        from watchkeeper.model.actor.effects import Fetch, fetch_exactly, new_session, next_event

        assert me.group == "billing"
        await new_session()
        await fetch_exactly([Fetch(ALL[0], -1, 0, "")])
        await next_event()
        await fetch_exactly([])
        return Ended("enough")

    with app.member(hosts, program=Program(turn, None, None)) as consumer:
        until(lambda: app.reads == {ALL[0]: None})
    assert app.reads == {}
    assert consumer.ended == Ended("enough")


# --- what is said of mistakes ------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variant": "hardend"}, "did you mean hardened"),
        ({"layout": "0.9"}, "layout is '0.9'; hardened runs on '0.7' or '0.8'"),
        ({"variant": "kafka_07", "layout": "0.8"}, "kafka_07 runs on '0.7'"),
        ({"config": {"auto.commit.enabel": True}}, "auto.commit.enabel is not a setting"),
        ({"group": "a/b"}, "group is 'a/b'; expected letters"),
        ({"topics": {}}, "needs either topics"),
        ({"white_list": "a.*"}, "only one of the three"),
        ({"topics": ["clicks"]}, "topics is ['clicks']; expected a mapping of topics to streams"),
        ({"topics": {7: 1}}, "a topic is 7; expected letters"),
        ({"topics": {"clicks": 0}}, "the number of streams of clicks is 0"),
        ({"topics": None, "black_list": "a", "streams": 0}, "streams is 0"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Consumer("localhost:2181", **{"group": "billing", "topics": TOPICS, **given})


def test_mistakes_of_brokers_are_named() -> None:
    with pytest.raises(ValueError, match="belongs to the cluster"):
        Broker("localhost", id=7, layout="0.8", topics={"clicks": 1})
    with pytest.raises(ValueError, match="id is -1"):
        Broker("localhost", id=-1)
    with pytest.raises(ValueError, match="expected a mapping of topics to partitions"):
        Broker("localhost", id=1, topics=["clicks"])
    with pytest.raises(ValueError, match="expected addresses as in"):
        Broker("/chroot", id=1)


PROGRAMS = {
    "nothing heavy": (
        "import sys, watchkeeper; print(any(m.startswith('kazoo') for m in sys.modules))",
        "False",
    ),
    "no kazoo": (
        "import sys; sys.modules['kazoo'] = None\n"
        "import watchkeeper\n"
        "try:\n    from watchkeeper import Consumer\n"
        "except ImportError as error:\n    print(error)",
        "watchkeeper.Consumer needs kazoo, which is not installed; install the extra 'live', "
        "for example with pip install 'watchkeeper[live]'",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_kazoo_is_loaded_when_it_is_used(program: str) -> None:
    code, expected = PROGRAMS[program]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected


@pytest.mark.usefixtures("broker")
def test_what_happens_is_logged(
    hosts: str, app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "watchkeeper")
    with app.member(hosts, consumer_id="north"):
        until(lambda: len(app.reads) == 4)
    messages = [
        record.getMessage() for record in caplog.records if "north" in record.getMessage()
    ]
    assert messages[0] == "billing/north: connected new=True"
    assert "billing/north: rebalance completed attempt=1 owns=4" in messages
    assert messages[-1] == "billing/north: ended why=left failed=False"
