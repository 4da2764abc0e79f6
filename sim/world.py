"""A simulated world: clusters, members and the timeline, put together from a plan.

`simulate` runs a plan with a seed and returns what happened. The same plan and seed give
the same trace, event for event.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from model.administrator import Administrator, administrator
from model.asks import Partition
from model.faults import Effect
from model.payloads import TopicAssignment
from model.plan import BrokerPlan, ClusterPlan, ConsumerPlan, GroupPlan, Plan
from model.program import Ended
from model.programs import broker_program, consumer_program
from model.registry import partition_07
from model.trace import Header, Trace
from sim.driver import Driver
from sim.ensemble import Ensemble
from sim.fetcher import Fetcher
from sim.kernel import Kernel, Network
from sim.logs import Logs
from sim.nemesis import Nemesis
from sim.node import Node
from sim.profile import DEFAULT, Profile
from sim.streams import Streams

WORLD = "sim"
PARTS = 200
"""How often a long run says how far it has come."""

Tell = Callable[[int, int], None]
"""Called with the present moment and the end, in microseconds."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a simulated run has left: its trace, what the timeline did, and some numbers."""

    trace: Trace
    effects: tuple[Effect, ...]
    operations: int
    """ZooKeeper operations answered."""


class Cluster:
    """One cluster at run time."""

    def __init__(self, world: World, plan: ClusterPlan, number: int) -> None:
        self.plan = plan
        self.prefix = f"{plan.name}:" if len(world.plan.clusters) > 1 else ""
        self.ensemble = Ensemble(world.kernel, world.network, plan, self.prefix, number)
        self.logs = Logs(world.kernel, self.ensemble, plan.layout)
        self.disks: dict[int, dict[str, int]] = {}
        """0.7: broker -> topic -> partitions it has on disk; it outlives the process."""
        for topic in plan.topics:
            for broker_id, count in topic.by_broker:
                self.disks.setdefault(broker_id, {})[topic.name] = count
        self.homes: dict[str, TopicAssignment] = {
            topic.name: TopicAssignment(topic.replicas) for topic in plan.topics
        }
        """0.8: topic -> which brokers hold which partition."""


class World:
    """Everything there is in a run."""

    NODE: type[Node] = Node
    DRIVER: type[Driver] = Driver

    def __init__(self, plan: Plan, seed: int, profile: Profile = DEFAULT) -> None:
        self.plan = plan
        streams = Streams(seed)
        self.kernel = Kernel(streams, profile)
        self.network = Network(self.kernel)
        self.clusters = {
            one.name: Cluster(self, one, number) for number, one in enumerate(plan.clusters)
        }
        self.nodes: dict[str, Node] = {}
        self.drivers: dict[str, Driver] = {}
        self.fetchers: dict[str, Fetcher] = {}
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers = {
            one.node: (cluster, one)
            for cluster in self.clusters.values()
            for one in cluster.plan.brokers
        }
        self.lives: dict[str, int] = {}
        """How many processes there have been of each name."""
        self.skews: dict[str, tuple[int, Effect]] = {}
        """Machine -> by how much its clock is wrong, and by which fault."""
        self.nemesis = Nemesis(self)

    # --- running -----------------------------------------------------------------------

    def run(self, tell: Tell | None = None) -> None:
        """Run from the beginning to the end of the time to settle.

        That end moves when a fault strikes late; `tell` hears how far the run has come.
        """
        for cluster in self.clusters.values():
            cluster.ensemble.election.begin()
            self.start_administrator(cluster)
        for node, (_, plan) in self.brokers.items():
            if plan.starts_us is not None:
                self.kernel.after(plan.starts_us, self.start, node)
        for node, (_, member) in self.consumers.items():
            if member.starts_us is not None:
                self.kernel.after(member.starts_us, self.start, node)
        self.nemesis.schedule()
        while self.nemesis.ends_us + self.plan.settle_us > self.kernel.now_us:
            self._run_until(self.nemesis.ends_us + self.plan.settle_us, tell)
        self.kernel.write("", "run ends")

    def _run_until(self, end_us: int, tell: Tell | None) -> None:
        if tell is None:
            self.kernel.run_until(end_us)
            return
        begun_us = self.kernel.now_us
        for part in range(1, PARTS + 1):
            self.kernel.run_until(begun_us + (end_us - begun_us) * part // PARTS)
            tell(self.kernel.now_us, end_us)

    # --- processes ---------------------------------------------------------------------

    def start(self, name: str, *, new_id: bool = False) -> Node | None:
        """Start the process of a consumer or a broker, unless it runs already."""
        running = self.nodes.get(name)
        if running is not None and running.is_alive:
            return None
        self.lives[name] = self.lives.get(name, 0) + 1
        if name in self.consumers:
            node = self._start_consumer(*self.consumers[name], new_id=new_id)
        else:
            node = self._start_broker(*self.brokers[name])
        if name in self.skews:
            node.skewed_by(*self.skews[name])
        return node

    def skew(self, name: str, by_us: int, effect: Effect) -> None:
        """The clock of a machine is wrong from now on, whatever runs there."""
        self.skews[name] = (by_us, effect)
        if name in self.nodes:
            self.nodes[name].skewed_by(by_us, effect)

    def _start_consumer(self, group: GroupPlan, plan: ConsumerPlan, *, new_id: bool) -> Node:
        cluster = self.clusters[group.cluster]
        program = consumer_program(
            cluster.plan, group.name, plan, life=self.lives[plan.node], new_id=new_id
        )
        node = self.NODE(self.kernel, plan.node, program, group=group.name)
        node.connect_to(
            cluster.ensemble,
            plan.settings.session_timeout_ms,
            resends_watches=plan.variant.client_resends_watches,
        )
        fetcher = Fetcher(
            node,
            self.network,
            cluster.logs,
            group.fetch_every_us,
            ends_on_error=plan.variant.fetch_errors == "end the fetcher",
        )
        self.fetchers[plan.node] = fetcher
        return self._run(node, fetcher, {"variant": plan.variant.name})

    def _start_broker(self, cluster: Cluster, plan: BrokerPlan) -> Node:
        on_disk = cluster.disks.get(plan.broker_id, {})
        program = broker_program(cluster.plan, plan, on_disk)
        node = self.NODE(self.kernel, plan.node, program)
        node.connect_to(cluster.ensemble, cluster.plan.session_timeout_ms, resends_watches=True)
        started = self._run(node, None, {"address": f"{plan.host}:{plan.port}"})
        cluster.logs.open_broker(node, plan, self.partitions_of(cluster, plan.broker_id))
        return started

    def partitions_of(self, cluster: Cluster, broker_id: int) -> list[Partition]:
        """The partitions that a broker has on its disk."""
        if cluster.plan.layout == "0.7":
            return [
                partition_07(topic, broker_id, index)
                for topic, count in sorted(cluster.disks.get(broker_id, {}).items())
                for index in range(count)
            ]
        return [
            Partition(topic, str(index))
            for topic, homes in sorted(cluster.homes.items())
            for index, brokers in homes.replicas
            if broker_id in brokers
        ]

    def start_administrator(self, cluster: Cluster) -> None:
        """Start what creates the topics, in the layout that needs it."""
        if cluster.plan.layout == "0.7":
            return
        name = f"{cluster.prefix}administrator"
        me = Administrator(name, tuple(sorted(cluster.homes.items())))
        node = self.NODE(self.kernel, name, administrator(me))
        node.connect_to(cluster.ensemble, cluster.plan.session_timeout_ms, resends_watches=False)
        self._run(node, None, {})

    def _run(self, node: Node, fetcher: Fetcher | None, about: Mapping[str, str]) -> Node:
        driver = self.DRIVER(self.kernel, node, fetcher)
        driver.on_end = lambda ended: self._ended(node, ended)
        self.nodes[node.name] = node
        self.drivers[node.name] = driver
        node.is_alive = True
        self.kernel.write(node.name, "starts", dict(about), group=node.group)
        self.nemesis.aim(driver)
        self.kernel.process(driver.run())
        return node

    def _ended(self, node: Node, ended: Ended) -> None:
        """A program is over, and its process with it."""
        self._bury(node)

    def _bury(self, node: Node) -> None:
        fetcher = self.fetchers.get(node.name)
        if fetcher is not None and fetcher.node is node:
            fetcher.stop()
        for cluster in self.clusters.values():
            cluster.logs.close_broker(node)
        node.kill()

    def kill(self, node: Node) -> None:
        """Kill a process."""
        assert node.client is not None, "every process has a client"
        self.kernel.write(
            node.name,
            "ends",
            {"why": "killed", "failed": True},
            session=node.client.session,
            group=node.group,
        )
        self._bury(node)

    def take_apart(self) -> None:
        """Undo the circles of references in a world that has run, so that it is freed at once."""
        parts: list[Any] = [self.kernel, self.network, self.nemesis, self]
        for cluster in self.clusters.values():
            ensemble = cluster.ensemble
            parts += [cluster, cluster.logs, ensemble.sessions, ensemble.election, ensemble]
            parts += ensemble.servers
        for name, node in self.nodes.items():
            parts += [self.drivers[name], node]
            if node.client is not None:
                parts.append(node.client)
        parts += self.fetchers.values()
        for part in parts:
            part.__dict__.clear()


def simulate(
    plan: Plan,
    seed: int = 0,
    *,
    versions: Mapping[str, str] | None = None,
    tell: Tell | None = None,
    profile: Profile = DEFAULT,
) -> Simulated:
    """Run a plan in simulation, with the latencies of a profile; the trace names its digest.

    Raises NotAnAsk or ProgramLoops for a user's program that breaks the rules, and
    Interrupted, with what there is so far, when the user has had enough.
    """
    world = World(plan, seed, profile)
    header = Header(
        plan.name,
        plan.variant,
        WORLD,
        seed,
        versions or {},
        profile="" if profile == DEFAULT else profile.digest,
    )
    # The collector would look through everything again and again and find nothing: a world
    # holds on to itself while it runs, and is taken apart when it has run.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        world.run(tell)
    except KeyboardInterrupt:
        world.kernel.write("", "run ends")
        raise Interrupted(_left_by(world, replace(header, partial=True))) from None
    finally:
        left = _left_by(world, header)
        world.take_apart()
        if was_enabled:
            _pass_over_what_is_left()
            gc.enable()
    return left


def _pass_over_what_is_left() -> None:
    """Let the collector look last at what is alive now: a trace holds no circle.

    To freeze and unfreeze moves everything, unseen, to the oldest generation; where the
    caller has frozen something, it stays so.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _left_by(world: World, header: Header) -> Simulated:
    return Simulated(
        Trace(header, world.kernel.rows), tuple(world.nemesis.effects), world.kernel.operations
    )


class Interrupted(Exception):
    """A run was interrupted; `so_far` is what it had left until then."""

    def __init__(self, so_far: Simulated) -> None:
        super().__init__("the run was interrupted")
        self.so_far = so_far
