"""A mirror inside an application carries what one real cluster has to the broker of another."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from tests.model.clients.test_mirror import fetched
from tests.support.live.broker_process import AT_ONCE, BrokerProcess, brokers
from tests.support.live_zookeeper import until
from watchkeeper import Mirror
from watchkeeper.cli.main import run_command
from watchkeeper.model.clients.producer.producer import Producer
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.format.requests import ProduceRequest, encode_request
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

NUMBERS = count(1)
QUICK = {"zookeeper.session.timeout.ms": 4000, "auto.commit.interval.ms": 200}
WAITS = {"producer.type": "async", "queue.time": 60_000, "batch.size": 1000}


@pytest.fixture
def hosts(zookeeper: Ensemble) -> str:
    return f"{zookeeper.hosts}/mirrors/{next(NUMBERS)}"


@contextmanager
def source(hosts: str, folder: Path, payloads: list[bytes]) -> Iterator[BrokerProcess]:
    """A broker that is registered, with messages of clicks."""
    with brokers(folder) as start:
        broker = start(*AT_ONCE, more=("--zookeeper", hosts))
        append(broker, payloads)
        yield broker


def append(broker: BrokerProcess, payloads: list[bytes]) -> None:
    request = ProduceRequest("clicks", 0, encode(map(Message.of, payloads)))
    with broker.connect() as connection:
        connection.sendall(encode_request(request))


def there(broker: BrokerProcess) -> list[Any]:
    """What a broker has of clicks."""
    with broker.connect() as connection:
        return fetched(connection)


def mirror(hosts: str, port: int, **more: Any) -> Mirror:
    given = {"config": QUICK, **more}
    return Mirror(hosts, brokers=f"0:127.0.0.1:{port}", group="hub", topics="click.*", **given)


@contextmanager
def mirror_process(hosts: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command `mirror`, in a process."""
    command = [sys.executable, "-m", "watchkeeper", "mirror", hosts, "--group", "hub"]
    command += ["--topics", "click.*", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


PAYLOADS = [f"click {number}".encode() for number in range(40)]


def test_what_a_mirror_has_carried_its_successor_does_not_carry_again(
    hosts: str, tmp_path: Path
) -> None:
    """The first sends what waits when it closes, and commits how far it has come."""
    with (
        source(hosts, tmp_path / "source", PAYLOADS[:30]) as broker,
        brokers(tmp_path / "target") as start,
    ):
        target = start(*AT_ONCE)
        with mirror(hosts, target.port, producer=WAITS, commits="before") as first:
            until(lambda: first.status.read == 30)
            first.ready()
            assert [partition.topic for partition in first.owned] == ["clicks"]
            assert (first.status.arrived, there(target)) == (0, [])
        assert (first.status.arrived, first.session) == (30, "closed")
        until(lambda: there(target) == PAYLOADS[:30])

        append(broker, PAYLOADS[30:])
        with mirror(hosts, target.port) as second:
            until(lambda: len(there(target)) == 40)
            assert second.status.read == 10
    assert (second.status.arrived, second.status.failed_sends) == (10, 0)


def test_the_command_mirrors_until_a_signal_comes(hosts: str, tmp_path: Path) -> None:
    with (
        source(hosts, tmp_path / "source", PAYLOADS),
        brokers(tmp_path / "target") as start,
    ):
        target = start(*AT_ONCE)
        words = ("--brokers", f"0:127.0.0.1:{target.port}", "--every", "100ms")
        settings = ("--set", "zookeeper.session.timeout.ms=4000")
        with mirror_process(hosts, *words, *settings) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first == f"mirror hub copies from {hosts} to 0:127.0.0.1:{target.port}\n"
            until(lambda: there(target) == PAYLOADS)
            process.send_signal(signal.SIGTERM)
            said = process.stdout.read()
            assert (process.wait(), said.splitlines()[-1]) == (
                0,
                "mirror hub has ended: 40 messages read, 40 arrived",
            )
            assert "mirror hub is a member of its group, with 1 partition" in said


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mirror", "localhost:1", "--brokers", "0:localhost:1", "--group", "hub"]

    assert run_command([*words, "--topics", "["]) == 4
    assert "[" in capsys.readouterr().err
    assert run_command([*words, "--topics", "a", "--set", "fetch.sise=1"]) == 4
    assert "did you mean fetch.size?" in capsys.readouterr().err
    assert run_command([*words, "--topics", "a", "--producer-set", "broker.list=x"]) == 4
    assert "broker.list is not a mirror's to set" in capsys.readouterr().err


def test_a_target_that_is_away_is_waited_for_and_nothing_counts_as_arrived(
    hosts: str, tmp_path: Path
) -> None:
    """Closing gives up in time; the next mirror begins where the first had arrived."""
    waiting = {**WAITS, "queue.time": 100, "connect.timeout.ms": 100}
    with (
        source(hosts, tmp_path / "source", PAYLOADS),
        brokers(tmp_path / "target") as start,
        socket() as away,
    ):
        away.bind(("127.0.0.1", 0))  # no process listens there, and no process else can
        with mirror(hosts, away.getsockname()[1], producer=waiting) as first:
            until(lambda: first.status.failed_sends > 1)
            assert not first.close(timeout_s=1)
        assert (first.status.arrived, first.session) == (0, "closed")

        target = start(*AT_ONCE)
        with mirror(hosts, target.port):
            until(lambda: there(target) == PAYLOADS)


def test_a_thread_that_fails_ends_the_mirror_and_is_reported(
    hosts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: Producer, *data: Any) -> None:
        raise ZeroDivisionError("deliberate")

    monkeypatch.setattr(Producer, "send", fails)
    with source(hosts, tmp_path / "source", PAYLOADS), mirror(hosts, 1) as running:
        with pytest.raises(ZeroDivisionError, match="deliberate"):
            running.wait_ended(20)
        assert running.ended is not None
        assert running.ended.failed


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"commits": "first"}, "commits is 'first'; expected 'after' or 'before'"),
        ({"producer": {"broker.list": "0:a:1"}}, "broker.list is not a mirror's to set"),
        ({"producer": {"zk.connect": "a:1"}}, "zk.connect is not a mirror's to set"),
        ({"producer": {"batch.sise": 1}}, "batch.sise"),
        ({"group": "a/b"}, "group is 'a/b'"),
        ({"brokers": "nowhere"}, "broker.list"),
    ],
)
def test_what_is_wrong_is_said(more: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"brokers": "0:a:9092", "group": "hub", "topics": "clicks", **more}
    with pytest.raises(Exception, match=message):
        Mirror("localhost:2181", **given)
