"""A producer learns of each of the four things that may happen to brokers and topics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.messages.cluster import Cluster, sends
from tests.support.messages.world import Process
from watchkeeper.model.actor.events import LEAVE, Command, CommandKind
from watchkeeper.model.clients.producer.metadata import (
    BROKERS,
    BrokerTable,
    MetadataSettings,
    metadata_program,
)
from watchkeeper.model.trace.kinds import EventKind


def watching(cluster: Cluster, *, resends_watches: bool = False) -> Process:
    """A process that keeps a table."""
    process = cluster.world.process("p")
    process.run_program(metadata_program(MetadataSettings(resends_watches)))
    cluster.world.run(200)
    return process


def table(process: Process) -> BrokerTable:
    """What was posted last."""
    found: BrokerTable = process.posted[BROKERS]
    return found


def order(cluster: Cluster, broker: int, what: CommandKind, topic: str, number: int) -> None:
    """Let an operator order something of a broker."""
    process = cluster.world.processes[f"b{broker}"]
    process.inbox.append(Command(what, topic, number))
    cluster.world._ring(process)
    cluster.world.run(200)


def truth(cluster: Cluster) -> BrokerTable:
    """What the registry says, read all at once."""
    nodes = cluster.world.server.tree.nodes
    brokers: list[tuple[int, str]] = []
    topics: dict[str, dict[int, int]] = {}
    for path, znode in nodes.items():
        parts = path.split("/")[1:]
        if parts[:2] == ["brokers", "ids"] and len(parts) == 3:
            brokers.append((int(parts[2]), (znode.data or b"").decode().split(":", 1)[1]))
        if parts[:2] == ["brokers", "topics"] and len(parts) > 2:
            counts = topics.setdefault(parts[2], {})
            if len(parts) == 4:
                counts[int(parts[3])] = int(znode.data or b"")
    return BrokerTable(
        tuple(sorted(brokers)),
        tuple(
            sorted(
                (name, tuple(sorted(partitions.items()))) for name, partitions in topics.items()
            )
        ),
    )


def test_it_knows_what_is_there_when_it_starts() -> None:
    """Every broker and every topic, with how many partitions each has."""
    cluster = Cluster(brokers=2, topics={"clicks": 2, "views": 1})

    found = table(watching(cluster))

    counts = (("clicks", ((0, 2), (1, 2))), ("views", ((0, 1), (1, 1))))
    assert found == BrokerTable(((0, "b0:9092"), (1, "b1:9092")), counts)


def test_it_learns_of_a_new_broker() -> None:
    """And of what it has of the topics that are known."""
    cluster = Cluster()
    process = watching(cluster)
    cluster.start_broker(1)
    cluster.world.run(200)

    assert table(process) == truth(cluster)
    assert [broker for broker, _ in table(process).brokers] == [0, 1]
    assert len(table(process).partitions_of("clicks")) == 2


def test_it_learns_that_a_broker_has_gone() -> None:
    """Its partitions go with it, at the same moment."""
    cluster = Cluster(brokers=2)
    process = watching(cluster)
    cluster.kill_broker(0)
    cluster.world.run(200)

    assert [place.broker for place in table(process).partitions_of("clicks")] == [1]


def test_it_learns_of_a_new_topic() -> None:
    """Before that, every broker counted as having partition 0 of it."""
    cluster = Cluster(brokers=2)
    process = watching(cluster)
    before = table(process).partitions_of("views")
    order(cluster, 1, CommandKind.CREATE_TOPIC, "views", 3)

    assert [tuple(place) for place in before] == [(0, 0), (1, 0)]
    assert [tuple(place) for place in table(process).partitions_of("views")] == [
        (1, 0),
        (1, 1),
        (1, 2),
    ]


def test_it_learns_that_a_broker_registers_for_a_known_topic() -> None:
    """The fourth of the events."""
    cluster = Cluster(brokers=2)
    process = watching(cluster)
    order(cluster, 1, CommandKind.CREATE_TOPIC, "views", 1)
    order(cluster, 0, CommandKind.CREATE_TOPIC, "views", 2)

    assert [tuple(place) for place in table(process).partitions_of("views")] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]


@pytest.mark.parametrize("resends_watches", [False, True])
def test_it_reads_everything_anew_after_its_session_has_expired(resends_watches: bool) -> None:
    """It reads the changes in between, and is notified of later ones."""
    cluster = Cluster(brokers=2)
    process = watching(cluster, resends_watches=resends_watches)
    cluster.world.expire(process)
    cluster.kill_broker(0)
    cluster.world.run(200)
    after_expiry = table(process)
    cluster.start_broker(2)
    cluster.world.run(200)

    assert [broker for broker, _ in after_expiry.brokers] == [1]
    assert table(process) == truth(cluster)
    assert [broker for broker, _ in table(process).brokers] == [1, 2]


def test_it_reads_everything_anew_after_a_break() -> None:
    """The watches are lost with the connection, and so are their notifications."""
    cluster = Cluster(brokers=2)
    process = watching(cluster)
    cluster.world.disconnect(process)
    cluster.kill_broker(0)
    order(cluster, 1, CommandKind.CREATE_TOPIC, "views", 1)
    cluster.world.reconnect(process)
    cluster.world.run(200)

    assert table(process) == truth(cluster)


def test_a_connection_that_breaks_in_the_middle_of_reading_loses_nothing() -> None:
    """The mark of what is to be read stays until it was read."""
    for after in range(12):
        cluster = Cluster(brokers=2)
        process = watching(cluster)
        cluster.kill_broker(0)
        order(cluster, 1, CommandKind.CREATE_TOPIC, "views", 1)
        for _ in range(after):
            cluster.world.run(1)
        cluster.world.disconnect(process)
        cluster.world.run(50)
        cluster.world.reconnect(process)
        cluster.world.run(500)

        assert table(process) == truth(cluster)


def test_it_leaves_on_command() -> None:
    """Its session ends with it."""
    cluster = Cluster()
    process = watching(cluster)
    process.inbox.append(LEAVE)
    cluster.world._ring(process)
    cluster.world.run(200)

    assert process.ended is not None
    assert process.session not in cluster.world.sessions


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("kill"), st.integers(0, 2)),
        st.tuples(st.just("start"), st.integers(0, 2)),
        st.tuples(st.just("topic"), st.integers(0, 2), st.sampled_from("abc")),
        st.tuples(st.just("expire")),
        st.tuples(st.just("break")),
        st.tuples(st.just("wait"), st.integers(1, 9)),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 1000))
def test_whatever_happens_in_the_end_it_knows_the_truth(
    steps: list[tuple[Any, ...]], seed: int
) -> None:
    """Brokers come and go, topics come, sessions end, connections break, one upon the other."""
    cluster = Cluster(brokers=1, seed=seed)
    world = cluster.world
    process = world.process("p")
    process.run_program(metadata_program(MetadataSettings(resends_watches=False)))
    up = {0}
    for word, *arguments in steps:
        number = arguments[0] if arguments else 0
        if word == "kill" and number in up:
            cluster.kill_broker(number)
            up.discard(number)
        elif word == "start" and number not in up:
            cluster.start_broker(number)
            up.add(number)
        elif word == "topic" and number in up:
            notification = Command(CommandKind.CREATE_TOPIC, arguments[1], 1 + number)
            world.processes[f"b{number}"].inbox.append(notification)
            world._ring(world.processes[f"b{number}"])
        elif word == "expire" and process.session in world.sessions:
            world.expire(process)
        elif word == "break" and process.session in world.sessions and process.is_connected:
            world.disconnect(process)
            world.run(number + 3)
            world.reconnect(process)
        elif word == "wait":
            world.run(number)
    world.run(2000)

    assert table(process) == truth(cluster)


# --- with a producer -----------------------------------------------------------------------


def test_a_producer_sends_to_a_broker_that_registers_for_a_topic() -> None:
    """The first message makes the topic, at one broker; another comes, and gets it later."""
    cluster = Cluster(topics={})
    process, producer = cluster.producer({})
    process.start(sends(producer, [None] * 60, pause_ms=50))
    cluster.world.run(400)
    cluster.start_broker(1)
    cluster.world.run(400)
    before = {event.node for event in cluster.world.rows if event.kind == EventKind.STORED}
    order(cluster, 1, CommandKind.CREATE_TOPIC, "clicks", 1)
    cluster.world.run(5000)
    after = {event.node for event in cluster.world.rows if event.kind == EventKind.STORED}

    assert (before, after) == ({"b0"}, {"b0", "b1"})
    assert cluster.violated() == []
