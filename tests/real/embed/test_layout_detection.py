"""A member without a layout finds out the one of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.support.live_zookeeper import LONG_MS, connected, disconnect, until
from watchkeeper import Broker, Consumer
from watchkeeper.model.actor.effects import Connected, NewSession
from watchkeeper.model.actor.errors import ConnectionLoss, SessionExpired
from watchkeeper.model.actor.operations import GetChildren, ZooKeeper
from watchkeeper.model.group.layout_detection import Detection, turn
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

NUMBERS = count(1)
CONFIG = {"zookeeper.session.timeout.ms": LONG_MS}
IN_07 = {"/brokers/topics/clicks/3": b"2"}
IN_08 = {"/brokers/topics/views": TopicAssignment(((0, (1,)), (1, (1,)))).encode()}
BROKER_08 = {"/brokers/ids/1": b'{"version":1,"host":"b1","port":9092,"jmx_port":-1}'}
BROKER_07 = {"/brokers/ids/3": b"b3-1:b3:9092"}


@pytest.fixture
def chroot() -> str:
    return f"/layouts/{next(NUMBERS)}"


@pytest.fixture
def hosts(zookeeper: Ensemble, chroot: str) -> str:
    return f"{zookeeper.hosts}{chroot}"


@pytest.fixture
def direct(zookeeper: Ensemble, chroot: str) -> Iterator[KazooClient]:
    client = connected(f"{zookeeper.hosts}")
    client.ensure_path(chroot)
    client.chroot = chroot
    yield client
    disconnect(client)


def register(client: KazooClient, *znodes: dict[str, bytes]) -> None:
    for path, data in {key: data for some in znodes for key, data in some.items()}.items():
        client.create(path, data, makepath=True)


def consumer(hosts: str, **more: Any) -> Consumer:
    topics = {"clicks": 1, "views": 1}
    return Consumer(hosts, group="billing", topics=topics, config=CONFIG, **more)


@pytest.mark.parametrize(
    ("registered", "owned"),
    [
        ([IN_07, BROKER_07], {"clicks/3-0", "clicks/3-1"}),
        ([IN_08, BROKER_08], {"views/0", "views/1"}),
        ([IN_08, BROKER_07], {"views/0", "views/1"}),
    ],
)
def test_topics_decide(
    hosts: str, direct: KazooClient, registered: list[dict[str, bytes]], owned: set[str]
) -> None:
    register(direct, *registered)
    with consumer(hosts) as member:
        member.ready()
        until(lambda: {str(partition) for partition in member.owned} == owned)


@pytest.mark.parametrize(
    ("registered", "layout"), [(BROKER_07, "0.7"), (BROKER_08, "0.8"), ({}, "0.7")]
)
def test_without_a_topic_brokers_decide(
    hosts: str, direct: KazooClient, registered: dict[str, bytes], layout: str
) -> None:
    """A broker registers its id as text in the one layout and in JSON in the other."""
    register(direct, registered)
    with Broker(hosts, id=7) as broker:
        broker.ready()
        data, _ = direct.get(paths.broker(7))
        assert data.startswith(b"{") == (layout == "0.8")


@pytest.mark.parametrize(
    ("registered", "variant", "why"),
    [
        (
            [IN_07, IN_08],
            "hardened",
            "the registry has two layouts: /brokers/topics/views is of layout 0.8 and "
            "/brokers/topics/clicks is of layout 0.7; choose one",
        ),
        ([IN_08], "kafka_07", "/brokers/topics/views is of layout 0.8, and kafka_07 runs on"),
    ],
)
def test_the_doubt_is_a_sentence(
    hosts: str, direct: KazooClient, registered: list[dict[str, bytes]], variant: str, why: str
) -> None:
    register(direct, *registered)
    with consumer(hosts, variant=variant) as member, pytest.raises(RuntimeError, match=why):
        member.ready()


@pytest.mark.parametrize("variant", ["hardened", "kafka_07"])
def test_the_wrong_layout_fails_with_a_sentence(
    hosts: str, direct: KazooClient, variant: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It had ended the program with a bare ValueError."""
    register(direct, {**IN_08, "/brokers/topics/views/partitions/0/state": b"{}"})
    with consumer(hosts, variant=variant, layout="0.7") as member:
        until(lambda: member.status.failed_attempts > 0)
        assert member.status.failed_turns == 0
        assert member.ended is None


def test_a_broker_that_is_not_ready_says_why(hosts: str, direct: KazooClient) -> None:
    """The znode has its address: it takes it for that of its last session, and waits."""
    register(direct, {"/brokers/ids/7": b"b7-1:b7:9092"})
    with Broker(hosts, id=7, host="b7", layout="0.7") as broker:
        until(lambda: bool(broker.account.last_problem))
        with pytest.raises(
            TimeoutError, match=r"; last, its id is in use, /brokers/ids/7 exists$"
        ):
            broker.ready(timeout_s=0.01)


@pytest.mark.parametrize("error", [ConnectionLoss("/brokers"), SessionExpired("/brokers")])
def test_nothing_is_decided_before_the_registry_is_read(error: Exception) -> None:
    """The next turn reads again."""
    me = Detection(None, lambda me: pytest.fail("no layout was found"))
    coroutine: Any = turn(ZooKeeper(), me, None)
    assert isinstance(coroutine.send(None), NewSession)
    assert isinstance(coroutine.send(None), GetChildren)
    if isinstance(error, ConnectionLoss):
        assert isinstance(coroutine.throw(error), Connected)
        error = SessionExpired("/brokers")
    with pytest.raises(StopIteration) as end:
        coroutine.throw(error)
    assert end.value.value is None


def test_two_members_share_what_they_find(hosts: str, direct: KazooClient) -> None:
    register(direct, IN_08)
    with consumer(hosts) as first, consumer(hosts) as second:
        first.ready()
        second.ready()
        until(lambda: len(first.owned) == len(second.owned) == 1)
