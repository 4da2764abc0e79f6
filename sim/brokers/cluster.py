"""One cluster of a simulated world: its ensemble, its logs, and the disks of its brokers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.actor.operations import Create, Delete, SetData
from watchkeeper.model.broker.registration import on_disk_after
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.placement import disks_of, partitions_on, reassign
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER, Controller, TopicAssignment
from watchkeeper.sim.brokers.rate_log import Logs
from watchkeeper.sim.faults.world import ServerTarget, servers_of
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.zookeeper.ensemble import Ensemble

if TYPE_CHECKING:
    from watchkeeper.sim.brokers.hosts import Hosts
    from watchkeeper.sim.brokers.replica_process import ReplicaHosts
    from watchkeeper.sim.brokers.replicated_load import ReplicatedLoad


class Cluster:
    """One cluster at run time."""

    def __init__(self, calls: Calls, plan: ClusterPlan, number: int, *, is_alone: bool) -> None:
        self.plan = plan
        self.prefix = "" if is_alone else f"{plan.name}:"
        self.administrator = plan.administrator(self.prefix)
        self.ensemble = Ensemble(calls.kernel, calls.network, plan, self.prefix, number)
        self.logs = Logs(calls.kernel, self.ensemble, plan.layout)
        self.disks = disks_of(plan)
        """0.7: broker -> topic -> partitions on its disk; outlives the processes."""
        self.homes: dict[str, TopicAssignment] = {
            topic.name: TopicAssignment(topic.replicas) for topic in plan.topics
        }
        """0.8: topic -> which brokers hold which partition."""
        self.deleted: dict[str, dict[str, None]] = {}
        """Broker -> the deleted topics that are still on its disk."""
        self.hosts: Hosts | None = None
        """The hosts of brokers that store messages; None where a log is only a rate."""
        if plan.storage is not None:
            self._store(calls)
        self.replicas: ReplicaHosts | None = None
        """The brokers that replicate; None where leaders are what ZooKeeper says."""
        self.load: ReplicatedLoad | None = None
        """Where messages of the timeline come from, if brokers replicate."""
        if plan.replication is not None:
            self._replicate(calls)

    def _store(self, calls: Calls) -> None:
        # A log that stores messages needs all of `model/log`; one that is a rate does not.
        from watchkeeper.sim.brokers.hosts import Hosts

        self.hosts = Hosts(self.plan, calls, self.logs, self.disks, self.deleted)

    def _replicate(self, calls: Calls) -> None:
        # A replica brings the protocol and the logs of 0.8 along, which no other broker needs.
        from watchkeeper.sim.brokers.replica_process import ReplicaHosts
        from watchkeeper.sim.brokers.replicated_load import ReplicatedLoad

        self.replicas = ReplicaHosts(self.plan, calls)
        self.load = ReplicatedLoad(self.plan, self.prefix, calls)

    @property
    def machines(self) -> Hosts | ReplicaHosts | None:
        """The hosts of its brokers; None where a log is only a rate."""
        return self.hosts or self.replicas

    @property
    def servers(self) -> list[ServerTarget]:
        """The servers of its ensemble, as faults affect them."""
        return servers_of(self.ensemble)

    @property
    def controller_id(self) -> int | None:
        """The broker id in `/controller`; None without one, or without a readable one."""
        znode = self.ensemble.committed.nodes.get(paths.CONTROLLER)
        return None if znode is None else Controller.broker_in(paths.CONTROLLER, znode.data)

    def leader_of(self, partition: Partition) -> int | None:
        """The broker id that leads a partition in the registry; None without a leader."""
        leader = self.logs.leader_of(partition)
        return None if leader == NO_LEADER else leader

    def operate(self, operation: Delete | SetData, done: Callable[[str], object]) -> None:
        """Change a znode from a session of an operator; a set creates what is not there."""
        is_there = operation.path in self.ensemble.head.nodes
        write: Delete | SetData | Create = operation
        if isinstance(operation, SetData) and not is_there:
            write = Create(operation.path, operation.data)
        failure = self.ensemble.operate(write, lambda answer, zxid: done(""))
        if failure is not None:
            done(f"{failure.path}: {failure.kind.meaning}")

    def undo_of(self, path: str) -> Delete | SetData:
        """The write that brings a znode back to its state of now: its data, or its absence."""
        znode = self.ensemble.head.nodes.get(path)
        return Delete(path) if znode is None else SetData(path, znode.data)

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""
        self.logs.add(broker, partitions)
        if self.hosts is not None:
            self.hosts.grow(broker, {partition.topic for partition in partitions})

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""
        for partition in self.logs.logs:
            if partition.topic == topic:
                self.logs.remove(broker, partition)
        if self.hosts is not None:
            self.hosts.delete(broker, topic)

    def close(self, broker: str, then: Callable[[], None]) -> None:
        """The program of a broker is over: call `then` once what it holds is in safety."""
        machines = self.machines
        if machines is None:
            then()
        else:
            machines.close(broker, then)

    def end(self, broker: str, lost: FaultEffect | None) -> None:
        """A broker's process is gone; with `lost` its host is lost as well."""
        if self.machines is not None:
            self.machines.end(broker, effect=lost)

    def files_of(self, broker: str) -> FileSystem:
        """The file system of a broker's host."""
        machines = self.machines
        assert machines is not None, "a fault of a disk is only aimed at a broker that has one"
        return machines.files_of(broker)

    def produce(self, topic: str, load: Load) -> Callable[[], None]:
        """Write to a topic from now on, where no producer does; returns what ends that."""
        if self.load is not None:
            self.load.produce(topic, load)
            return partial(self.load.cease, load)
        self.logs.produce(topic, load)
        return partial(self.logs.cease, topic, load)

    def change_disk(self, broker_id: int, order: Command) -> None:
        """Change a topic on the disk of one broker (0.7)."""
        self.disks[broker_id] = on_disk_after(self.disks.get(broker_id, {}), order)

    def reassign(self, order: Command, alive: tuple[int, ...]) -> None:
        """Change the assignment of a topic to the brokers that run (0.8)."""
        reassign(self.homes, order, alive)

    def partitions_of(self, broker_id: int) -> list[Partition]:
        """Return the partitions that a broker has on its disk."""
        return partitions_on(broker_id, self.plan.layout, self.disks, self.homes)
