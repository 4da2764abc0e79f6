"""Brokers of this project that replicate, each a process of its own, beside brokers of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import Any

from bench.interop_clients.broker import HOST
from bench.interop_clients.kafka_cluster import free_port

from watchkeeper.model.actor.events import LEAVE
from watchkeeper.model.broker.registration import Broker
from watchkeeper.model.controller.broker import controlling_broker
from watchkeeper.model.controller.state_machines.reign import ControllerSettings
from watchkeeper.model.controller.state_machines.variants import CONTROLLERS
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.offset_manager.settings import ReplicatedOffsetSettings
from watchkeeper.model.replication.settings import AutoCreation, FetchLayout, ReplicationSettings
from watchkeeper.model.replication.variants import REPLICATIONS
from watchkeeper.real.member.data_plane_file import DataPlaneFile, DataPlaneState
from watchkeeper.real.member.job import Job, ReplicaRole
from watchkeeper.real.world.process import MemberProcess

VARIANT = "kafka_08"
SESSION_MS = 6_000
CHECKPOINT_MS = 1_000
CREATION = AutoCreation(partitions=2, replicas=3)
WITHIN_S = 60.0


class OwnBrokers:
    """Brokers at a ZooKeeper, which are started, ended and killed one by one."""

    def __init__(self, folder: Path, hosts: str, *, lag_ms: int) -> None:
        self.folder = folder
        self._hosts = hosts
        self._lag_ms = lag_ms
        self._ports: dict[int, int] = {}
        self._processes: dict[int, MemberProcess] = {}
        self._reports: dict[int, list[dict[str, Any]]] = {}
        self._addresses: dict[str, str] = {}
        self._lives = 0

    def know(self, ports: Mapping[int, int]) -> None:
        """Know where the other brokers listen: a live broker connects to no other address."""
        every = (f"{HOST}:{port}" for port in (*ports.values(), *self._ports.values()))
        self._addresses = {address: address for address in every}
        self.folder.mkdir(exist_ok=True)
        self._file.write(DataPlaneState(listening=self._addresses))

    @property
    def ports(self) -> dict[int, int]:
        """Broker -> its port, which it keeps from one process to the next."""
        return dict(self._ports)

    @property
    def _file(self) -> DataPlaneFile:
        return DataPlaneFile(self.folder / "addresses.json")

    def reserve(self, broker: int) -> None:
        """Give a broker its port."""
        self._ports[broker] = free_port()

    def start(self, broker: int) -> None:
        """Start a broker, on the folder it had before, and wait until it serves."""
        self._lives += 1
        reports: list[dict[str, Any]] = []
        self._reports[broker] = reports
        process = MemberProcess(
            self.folder / f"{broker}.log", lambda member, message: reports.append(message)
        )
        self._processes[broker] = process
        process.begin(self._job(broker))
        deadline_s = monotonic() + WITHIN_S
        while not any("serves" in report for report in reports):
            if monotonic() > deadline_s or not process.is_alive:
                said = self.said(broker)
                raise AssertionError(f"broker {broker} has not begun: {reports} {said}")
            sleep(0.05)

    def said(self, broker: int) -> str:
        """The end of what a broker's process has printed."""
        return (self.folder / f"{broker}.log").read_text()[-300:]

    def logs(self, broker: int) -> Path:
        """The folder of a broker's logs."""
        return self.folder / f"logs-{broker}"

    def kill(self, broker: int) -> None:
        """Kill a broker as `kill -9` does."""
        self._processes[broker].kill()

    def pause(self, broker: int) -> None:
        """Stop the process of a broker as SIGSTOP does."""
        self._processes[broker].pause()

    def resume(self, broker: int) -> None:
        """Let it go on."""
        self._processes[broker].resume()

    def leave(self, broker: int) -> None:
        """Let a broker hand over what it leads, and end."""
        process = self._processes[broker]
        process.deliver(LEAVE)
        deadline_s = monotonic() + WITHIN_S
        while process.is_alive:
            if monotonic() > deadline_s:
                raise AssertionError(f"broker {broker} has not ended: {self.said(broker)}")
            sleep(0.05)

    def is_alive(self, broker: int) -> bool:
        """Whether the process of a broker runs."""
        return self._processes[broker].is_alive

    def end(self) -> None:
        """End every process."""
        for process in self._processes.values():
            process.close()

    # --- the job of a process ----------------------------------------------------------

    def _job(self, broker: int) -> Job:
        port, node = self._ports[broker], f"broker/{broker}"
        me = Broker(
            node, broker, HOST, port, "0.8", VARIANTS[VARIANT], session_timeout_ms=SESSION_MS
        )
        controller = ControllerSettings(
            broker,
            CONTROLLERS[VARIANT],
            allows_unclean=False,
            session_timeout_ms=SESSION_MS,
            sends=True,
            rebalance_ms=None,
            shutdown_backoff_ms=1_000,
        )
        replication = ReplicationSettings(
            broker,
            REPLICATIONS[VARIANT],
            allows_unclean=False,
            lag_time_ms=self._lag_ms,
            checkpoint_ms=CHECKPOINT_MS,
            auto_creation=CREATION,
            fetch_layout=FetchLayout.KAFKA_08,
        )
        role = ReplicaRole(
            replication,
            ReplicatedOffsetSettings(),
            str(self.logs(broker)),
            str(self.folder / f"on-disk-{broker}"),
        )
        job = Job(
            node,
            "",
            controlling_broker(me, controller),
            self._hosts,
            "",
            SESSION_MS,
            str(self.folder / f"{broker}.{self._lives}.jsonl"),
            str(self._file.path),
            time_ns(),
            {},
        )
        return replace(job, port=port, resends_watches=True, role=role)
