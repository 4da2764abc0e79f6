"""Two brokers of 0.8 and a ZooKeeper, and a partition whose leader a test moves by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kazoo.client import KazooClient

from tests.support.live.broker_process import HOST, BrokerProcess, brokers
from tests.support.live_zookeeper import until
from watchkeeper import SimpleConsumer
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

OF_08 = ("--protocol", "0.8")
WHERE = paths.partition_state(paths.Partition("clicks", "0"))


def address_of(process: BrokerProcess) -> str:
    """The address of a broker."""
    return f"{HOST}:{process.port}"


class TwoBrokers(NamedTuple):
    """Brokers 1 and 2; clicks/0 is on both, and they do not replicate it."""

    hosts: str
    first: BrokerProcess
    second: BrokerProcess
    client: KazooClient
    restart_second: Callable[[], None]
    """Kills the second broker, and starts it again at its address."""

    def move_leader(self, broker: int) -> None:
        """Let a broker lead, and wait until both say so."""
        self.client.set(WHERE, _state(broker))
        leader = self.first if broker == 1 else self.second
        for process in (self.first, self.second):
            with SimpleConsumer(address_of(process), protocol="0.8") as consumer:
                until(lambda: consumer.leaders("clicks") == {0: address_of(leader)})


@contextmanager
def two_brokers(folder: Path, *, leader: int) -> Iterator[TwoBrokers]:
    """Start a ZooKeeper and two brokers, one of which leads."""
    with (
        ensemble_of(Implementation.PYTHON, inside=folder / "zk") as ensemble,
        brokers(folder / "1") as start_first,
        brokers(folder / "2") as start_second,
    ):
        ensemble.start()
        client = KazooClient(ensemble.hosts)
        client.start()
        more = (*OF_08, "--zookeeper", ensemble.hosts, "--id")
        try:
            assigned = b'{"version":1,"partitions":{"0":[1,2]}}'
            client.create(paths.topic("clicks"), assigned, makepath=True)
            client.create(WHERE, _state(leader), makepath=True)
            first, second = start_first(more=(*more, "1")), start_second(more=(*more, "2"))

            def restart_second() -> None:
                second.kill()
                start_second(more=(*more, "2", "--port", str(second.port)))

            yield TwoBrokers(ensemble.hosts, first, second, client, restart_second)
        finally:
            client.stop()
            client.close()


def _state(leader: int) -> bytes:
    """The state of a partition, as a controller writes it."""
    return PartitionState(
        controller_epoch=1, leader=leader, leader_epoch=leader, isr=(1, 2)
    ).encode()
