"""`watchkeeper broker --replicate`: its settings, what it refuses, and a cluster of three."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.broker_process import HOST, BrokerProcess
from tests.support.live_zookeeper import until
from watchkeeper import Producer, SimpleConsumer
from watchkeeper.console.exit import Stop
from watchkeeper.model.replication.settings import AutoCreation, FetchLayout
from watchkeeper.operate.broker import Options, run
from watchkeeper.real.replica_broker.settings import KEYS, replica_broker_settings
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

FOLDER = {"log.dirs": "logs"}
OF_TOPICS = ("default.replication.factor=3", "replica.lag.time.max.ms=2000")
RETRIES = {"message.send.max.retries": 100, "retry.backoff.ms": 200}


def test_settings_have_the_defaults_of_kafka() -> None:
    """But for the fetches, which are those that the variant can cut its logs with."""
    settings = replica_broker_settings(FOLDER, "kafka_08")
    assert settings.port == 9092
    assert settings.replication.lag_messages == 4_000
    assert settings.replication.auto_creation == AutoCreation(1, 1)
    assert settings.replication.fetch_layout is FetchLayout.KAFKA_08
    assert settings.rebalance_ms == 300_000
    assert not settings.deletes_topics
    hardened = replica_broker_settings(FOLDER, "hardened")
    assert hardened.replication.fetch_layout is FetchLayout.WITH_EPOCHS


OTHERS = {
    "log.dirs": "elsewhere",
    "replica.lag.max.messages": "7",
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
    "delete.topic.enable": "true",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
}


@pytest.mark.parametrize("key", KEYS)
def test_each_setting_changes_something(key: str) -> None:
    """Another value gives other settings."""
    value = OTHERS.get(key, "17")
    changed = replica_broker_settings({**FOLDER, key: value}, "kafka_08")
    assert changed != replica_broker_settings(FOLDER, "kafka_08")


@pytest.mark.parametrize(
    ("given", "variant", "why"),
    [
        ({"replica.lag.max.messages": "5"}, "hardened", "no effect in hardened"),
        ({"min.insync.replica": "2"}, "kafka_08", "did you mean min.insync.replicas"),
        ({"log.segment.bytes": "2"}, "kafka_08", "not a setting that a broker with --repl"),
        ({"delete.topic.enable": "yes"}, "kafka_08", "true or false"),
        ({"port": "-1"}, "kafka_08", "whole number from 0"),
        (
            {"auto.create.topics.enable": "false", "num.partitions": "2"},
            "kafka_08",
            "no effect with auto.create.topics.enable=false",
        ),
    ],
)
def test_settings_without_effect_are_refused(
    given: dict[str, str], variant: str, why: str
) -> None:
    """With what to do."""
    with pytest.raises(ValueError, match=why):
        replica_broker_settings({**FOLDER, **given}, variant)


def options(tmp_path: Path, protocol: str, zookeeper: str | None) -> Options:
    """The options of a broker that replicates."""
    return Options(str(tmp_path), protocol, 0, 1, zookeeper, "hardened")


def test_replicas_need_a_zookeeper_and_the_protocol_of_08(tmp_path: Path) -> None:
    """The sentence names the option that is missing."""
    with pytest.raises(Stop, match="--replicate needs --zookeeper"):
        run(options(tmp_path, "0.8", None), ())
    with pytest.raises(Stop, match=r"--replicate needs --protocol 0\.8"):
        run(options(tmp_path, "0.7", f"{HOST}:1"), ())


@pytest.mark.parametrize("hosts", [":::", "localhost:x", ""])
@pytest.mark.parametrize("replicates", [None, "hardened"])
def test_what_is_no_address_is_refused(
    hosts: str, replicates: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the broker opens its folder and listens."""
    given = options(tmp_path, "0.8", hosts)._replace(replicates=replicates)
    with pytest.raises(Stop, match="is no address of a ZooKeeper"):
        run(given, ())
    assert capsys.readouterr().out == ""


def test_logs_of_another_kind_of_broker_are_refused(tmp_path: Path) -> None:
    """One that does not replicate has segments, which a replica does not read."""
    (tmp_path / "clicks-0").mkdir()
    (tmp_path / "clicks-0" / "00000000000000000007.log").touch()
    with pytest.raises(Stop, match="clicks-0 has segments of a broker that does not replicate"):
        run(options(tmp_path, "0.8", f"{HOST}:1"), ())


# --- a cluster -------------------------------------------------------------------------


class ThreeBrokers:
    """Three brokers at one ZooKeeper."""

    def __init__(self, folder: Path, hosts: str, variant: str) -> None:
        self.folder = folder
        self.more = ("--protocol", "0.8", "--zookeeper", hosts, "--replicate", variant)
        self.processes = {number: self.start(number) for number in range(3)}

    def start(self, number: int) -> BrokerProcess:
        """Start a broker, and wait until it is registered."""
        more = (*self.more, "--id", str(number))
        process = BrokerProcess(self.folder / str(number), OF_TOPICS, more)
        until(lambda: f"broker {number} is registered" in process.said)
        return process

    @property
    def live(self) -> dict[str, int]:
        """Address -> the broker, of those that run."""
        return {
            f"{HOST}:{process.port}": number
            for number, process in self.processes.items()
            if process.process.poll() is None
        }

    def leader(self) -> int | None:
        """The broker that leads the partition, as one of them says; None without one."""
        with SimpleConsumer(next(iter(self.live)), protocol="0.8") as consumer:
            return self.live.get(consumer.leaders("clicks").get(0, ""))

    def payloads(self) -> list[bytes]:
        """What the leader has committed."""
        until(lambda: self.leader() is not None)
        number = self.leader()
        address = next(each for each, broker in self.live.items() if broker == number)
        with SimpleConsumer(address, protocol="0.8") as consumer:
            return [each.payload for each in consumer.fetch("clicks", 0, 0)]


@pytest.fixture(params=["hardened", "kafka_08"])
def three(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ThreeBrokers]:
    """Three brokers of a variant."""
    with ensemble_of(Implementation.PYTHON, inside=tmp_path / "zookeeper") as ensemble:
        ensemble.start()
        brokers = ThreeBrokers(tmp_path, ensemble.hosts, request.param)
        try:
            yield brokers
        finally:
            for process in brokers.processes.values():
                if process.process.poll() is None:
                    process.kill()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the ports of brokers are Linux's")
def test_a_confirmed_message_outlives_its_leaders(three: ThreeBrokers) -> None:
    """One leader is killed, the next one leaves; the first one comes back and has it all."""
    addresses = ",".join(three.live)
    config = {"metadata.broker.list": addresses, "request.required.acks": -1, **RETRIES}
    with Producer(config, protocol="0.8") as producer:
        producer.send("clicks", b"one", b"two")
        first = three.leader()
        assert first is not None
        three.processes[first].kill()
        producer.send("clicks", b"three")
        assert three.payloads() == [b"one", b"two", b"three"]
        second = three.leader()
        assert second not in (None, first)
        assert three.processes[second or 0].terminate() == 0
        producer.send("clicks", b"four")
    three.processes[first] = three.start(first)
    until(lambda: three.payloads() == [b"one", b"two", b"three", b"four"])
