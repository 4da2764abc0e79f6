"""The ends of logs, from brokers of 0.7 and of 0.8, and from what is no broker."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support.live.broker_process import AT_ONCE, brokers, messages, produce, send_request
from tests.support.live.kafka import ARTIFACTS, KafkaBroker
from tests.support.live_registry import Cluster
from tests.support.live_zookeeper import connected, disconnect
from tests.support.registries import GROUP, Shape, healthy
from watchkeeper.cli.main import run_command
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.broker.registration import Broker
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.log.format.requests import LATEST, OffsetsRequest
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import Layout
from watchkeeper.real.member.data_plane_file import DataPlaneFile, DataPlaneState, LogState
from watchkeeper.real.member.rate_server import RateServer
from watchkeeper.real.net.log_ends import log_ends
from watchkeeper.real.ports import free_ports
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def test_a_live_broker_of_0_7_answers(tmp_path: Path) -> None:
    """More partitions than are requested at once; the broker has two of them."""
    data = messages(b"one", b"two")
    with brokers(tmp_path / "logs") as start:
        broker = start(*AT_ONCE, "topic.partition.count.map=clicks:2")
        with broker.connect() as connection:
            produce(connection, data, "clicks")
            send_request(OffsetsRequest("clicks", 0, LATEST, 1), connection)
        address = f"127.0.0.1:{broker.port}"
        partitions = [Partition("clicks", f"4-{number}") for number in range(250)]
        ends, reasons = log_ends({address: partitions})

    assert ends == {partitions[0]: len(data), partitions[1]: 0}
    assert len(reasons) == 248
    assert reasons[0] == (
        f"the lag of clicks/4-2 is unknown: the broker at {address} answers 'WrongPartition'"
    )


# --- a whole audit ---------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["0.7", "0.8"])
def test_an_audit_tells_the_lag(
    zookeeper: Ensemble,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    layout: Layout,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Broker 0 serves one of its two partitions; nothing listens at the other's address."""
    mine, absent = ("0-0", "0-1") if layout == "0.7" else ("0", "2")
    ours, unused = free_ports(2)
    file = DataPlaneFile(tmp_path / "cluster.json")
    served = f"clicks/{mine}"
    file.write(DataPlaneState(logs={served: LogState(base=50)}, hosts={"broker/0": [served]}))
    me = Broker("broker/0", 0, "h", ours, layout, VARIANTS["hardened"])
    with Cluster.of_test(zookeeper.hosts, request) as cluster:
        nodes = healthy(Shape(layout, topics={"clicks": 2 if layout == "0.7" else 4}))
        for broker, port in enumerate((ours, unused)):
            data = nodes[paths.broker(broker)][0].replace(b"%d" % (9000 + broker), b"%d" % port)
            nodes[paths.broker(broker)] = (data, 0x100 + broker)
        cluster.write(nodes)
        server = RateServer(ours, me, file, lambda: 0)
        try:
            code = run_command(["audit", cluster.hosts, "--lag", "--json"])
        finally:
            server.shutdown()
            server.server_close()

    output = json.loads(capsys.readouterr().out)
    assert code == 0
    assert output["groups"][0]["lag"] == {served: 50 - 42}
    of_lag = [note for note in output["notes"] if note.startswith("the lag")]
    assert len(of_lag) == 2
    assert f"the lag at 127.0.0.1:{unused} is unknown" in of_lag[1]
    assert f"the lag of clicks/{absent} is unknown" in of_lag[0]


# --- no broker -------------------------------------------------------------------------


@contextmanager
def program(answer: bytes) -> Iterator[str]:
    """Another program that listens: it sends the same to each client, and hangs up."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "the broker closes the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of this size is not taken here"),
        (bytes(4), "a frame of this size is not taken here"),
        (b"\0\0\0\4half", "the response does not follow the protocol"),
        (b"\0\0\0\20half", "the broker closes the connection"),
    ],
)
@pytest.mark.parametrize("name", ["3-0", "0"])
def test_what_is_no_broker_is_named(name: str, answer: bytes, why: str) -> None:
    with program(answer) as address:
        ends, [reason] = log_ends({address: [Partition("clicks", name)]})
    assert not ends
    assert reason.startswith(f"the lag at {address} is unknown: no valid response")
    assert why in reason


# --- Kafka's own -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("version", ARTIFACTS)
def test_kafka_answers(
    zookeeper: Ensemble, tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its broker and its producer, and an audit of a group that has read none of 5 messages."""
    hosts = f"{zookeeper.hosts}/kafka-{version}"
    broker = KafkaBroker(version, hosts, tmp_path)
    with broker.running():
        broker.produce("clicks", *"abcde")
        client = connected(hosts)
        for number in range(2):
            path = paths.offset(GROUP, Partition("clicks", str(number)))
            client.create(path, b"0", makepath=True)
        disconnect(client)
        run_command(["audit", hosts, "--lag", "--json"])
    output: Any = json.loads(capsys.readouterr().out)
    [group] = output["groups"]
    assert sum(group["lag"].values()) == 5
    assert set(group["lag"]) == {"clicks/0", "clicks/1"}
