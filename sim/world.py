"""A simulated world: clusters, members and the timeline, put together from a plan.

`simulate` runs a plan with a seed and returns what happened. The same plan and seed give
the same trace, event for event.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from watchkeeper.model.actor.events import Command
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.group.variants import FetchErrors
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.nemesis import Nemesis
from watchkeeper.model.nemesis.world import Undo
from watchkeeper.model.plan.bounds import mix_of
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan, ConsumerPlan, GroupPlan, Plan, ProducerPlan
from watchkeeper.model.programs import (
    PRODUCER_TIMEOUT_MS,
    administrator_program,
    broker_program,
    consumer_program,
    producer_program,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import NOTHING, Header, Trace
from watchkeeper.sim.brokers.cluster import Cluster
from watchkeeper.sim.brokers.consumer_process import StreamFetcher, stream_fetcher
from watchkeeper.sim.brokers.producer_process import Producers
from watchkeeper.sim.brokers.rate_fetcher import Fetcher
from watchkeeper.sim.brokers.result_stores import Results
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile
from watchkeeper.sim.engine.random_streams import Streams
from watchkeeper.sim.faults.faults import HANDLERS
from watchkeeper.sim.faults.fork import Branch, branch_off
from watchkeeper.sim.faults.world import NodeTarget
from watchkeeper.sim.faults.world import World as FaultyWorld
from watchkeeper.sim.process.driver import Driver, Fetching
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.process.tasks import Tasks
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.teardown import take_apart
from watchkeeper.sim.zookeeper.ensemble import Ensemble
from watchkeeper.sim.zookeeper.network import Network

WORLD = "sim"
PARTS = 200
"""How often a long run says how far it has come."""

Tell = Callable[[int, int], None]
"""Called with the present moment and the end, in microseconds."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a simulated run has left: its trace, what the timeline did, and some numbers."""

    trace: Trace
    effects: tuple[FaultEffect, ...]
    operations: int
    """ZooKeeper operations answered."""


class World:
    """Everything there is in a run."""

    NODE: type[Node] = Node
    DRIVER: type[Driver] = Driver

    def __init__(self, plan: Plan, seed: int, profile: Profile = DEFAULT) -> None:
        self.plan = plan
        streams = Streams(seed)
        self.kernel = Kernel(streams, profile)
        self.network = Network(self.kernel)
        self.calls = Calls(self.kernel, self.network)
        self.clusters = {
            cluster.name: Cluster(self.calls, cluster, number, is_alone=len(plan.clusters) == 1)
            for number, cluster in enumerate(plan.clusters)
        }
        self.nodes: dict[str, Node] = {}
        self.drivers: dict[str, Driver] = {}
        self.fetchers: dict[str, Fetcher | StreamFetcher] = {}
        self.results = Results()
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers = {
            broker.node: (cluster, broker)
            for cluster in self.clusters.values()
            for broker in cluster.plan.brokers
        }
        self.administrators = {each.administrator: each for each in self.clusters.values()}
        self.producers = Producers(plan.producers)
        self.lives: dict[str, int] = {}
        """How many processes there have been of each name."""
        self._on_end: dict[Node, Callable[[], object]] = {}
        """Process -> what to call once it has ended by itself."""
        self.skews: dict[str, tuple[int, FaultEffect]] = {}
        """Machine -> by how much its clock is wrong, and by which fault."""
        self.nemesis: Nemesis[FaultyWorld] = Nemesis(self, plan, HANDLERS)

    # --- running -----------------------------------------------------------------------

    def run(self, tell: Tell | None = None) -> None:
        """Run from the beginning to the end of the time to settle.

        That end moves when a fault strikes late; `tell` hears how far the run has come.
        """
        for cluster in self.clusters.values():
            cluster.ensemble.election.begin()
            if cluster.administrator:
                self._start(cluster.administrator)
        for node, (_, plan) in self.brokers.items():
            if plan.starts_us is not None:
                self.kernel.after(plan.starts_us, self._start, node)
        for node in self.producers.plans:
            self.kernel.after(0, self._start, node)
        for node, (_, member) in self.consumers.items():
            if member.starts_us is not None:
                self.kernel.after(member.starts_us, self._start, node)
        self.nemesis.schedule()
        while self.nemesis.ends_us + self.plan.settle_us > self.kernel.now_us:
            self._run_until(self.nemesis.ends_us + self.plan.settle_us, tell)
        self.kernel.write("", EventKind.RUN_ENDED)

    def _run_until(self, end_us: int, tell: Tell | None) -> None:
        if tell is None:
            self.kernel.run_until(end_us)
            return
        begun_us = self.kernel.now_us
        for part in range(1, PARTS + 1):
            self.kernel.run_until(begun_us + (end_us - begun_us) * part // PARTS)
            tell(self.kernel.now_us, end_us)

    # --- processes ---------------------------------------------------------------------

    def start(self, name: str, *, new_id: bool = False) -> list[Node]:
        """Start a process, with each of its members that does not run already."""
        started = (self._start(member, new_id=new_id) for member in self.plan.members_of(name))
        return [node for node in started if node is not None]

    def _start(self, name: str, *, new_id: bool = False) -> Node | None:
        """Start a consumer, a broker, a producer or an administrator, unless it runs already."""
        running = self.nodes.get(name)
        if running is not None and running.is_alive:
            return None
        self.lives[name] = self.lives.get(name, 0) + 1
        if name in self.consumers:
            node = self._start_consumer(*self.consumers[name], new_id=new_id)
        elif name in self.producers.plans:
            node = self._start_producer(self.producers.plans[name])
        elif name in self.administrators:
            node = self._start_administrator(self.administrators[name])
        else:
            node = self._start_broker(*self.brokers[name])
        if name in self.skews:
            node.skewed_by(*self.skews[name])
        return node

    def skew(self, name: str, by_us: int, effect: FaultEffect) -> None:
        """The clock of a machine is wrong from now on, whatever runs there."""
        for member in self.plan.members_of(name):
            self.skews[member] = (by_us, effect)
            if member in self.nodes:
                self.nodes[member].skewed_by(by_us, effect)

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
        if cluster.machines is not None:
            return self._with_streams(node, program, group, plan)
        fetcher = Fetcher(
            node,
            self.network,
            cluster.logs,
            group.fetch_every_us,
            ends_on_error=plan.variant.fetch_errors is FetchErrors.END_FETCHER,
        )
        self.fetchers[plan.node] = fetcher
        return self._run(node, fetcher, {"variant": plan.variant.name})

    def _with_streams(
        self, node: Node, program: Program, group: GroupPlan, plan: ConsumerPlan
    ) -> Node:
        """Start a consumer that is handed messages."""
        tasks = Tasks(node, self.calls)
        brokers = self.clusters[group.cluster].plan.leader_brokers
        fetcher = stream_fetcher(program.me, plan.variant, group, tasks, self.results, brokers)
        if plan.program is None:
            node.program = replace(program, me=fetcher.connector.me)
        self.fetchers[plan.node] = fetcher
        self.run_with(node, tasks, {"variant": plan.variant.name}, fetcher)
        return node

    def _start_broker(self, cluster: Cluster, plan: BrokerPlan) -> Node:
        on_disk = cluster.disks.get(plan.broker_id, {})
        program = broker_program(cluster.plan, plan, on_disk)
        node = self.NODE(self.kernel, plan.node, program)
        node.connect_to(cluster.ensemble, cluster.plan.session_timeout_ms, resends_watches=True)
        driver = self._place(node, None, {"address": f"{plan.host}:{plan.port}"})

        def serves() -> None:
            cluster.logs.open_broker(node, plan, cluster.partitions_of(plan.broker_id))

        def ready() -> None:
            serves()
            driver.start()

        def failed(why: str) -> None:
            self.kill(node, why)

        if cluster.replicas is not None:
            tasks = cluster.replicas.start(node, plan, ready, failed)
            if self.nemesis.steps_of(plan.node):
                tasks.reached = partial(self.nemesis.reach, plan.node)
            driver.join(tasks)
        elif cluster.hosts is not None:
            cluster.hosts.start(node, plan, ready, failed)
        else:
            driver.start()
            serves()
        return node

    def _start_producer(self, plan: ProducerPlan) -> Node:
        node = self.NODE(self.kernel, plan.node, producer_program(plan))
        node.connect_to(
            self.clusters[plan.cluster].ensemble, PRODUCER_TIMEOUT_MS, resends_watches=True
        )
        tasks = Tasks(node, self.calls)
        self.run_with(node, tasks, {"sends to": plan.cluster})
        self.producers.start(plan, tasks)
        return node

    def _start_administrator(self, cluster: Cluster) -> Node:
        program = administrator_program(cluster.plan, cluster.administrator, cluster.homes)
        node = self.NODE(self.kernel, cluster.administrator, program)
        node.connect_to(cluster.ensemble, cluster.plan.session_timeout_ms, resends_watches=False)
        return self._run(node, None, {})

    def _run(self, node: Node, fetcher: Fetching | None, about: Mapping[str, str]) -> Node:
        self._place(node, fetcher, about).start()
        return node

    def run_with(
        self,
        node: Node,
        tasks: Tasks,
        about: Mapping[str, str],
        fetcher: StreamFetcher | None = None,
    ) -> Driver:
        """Run a process whose program has tasks beside it."""
        driver = self._place(node, fetcher, about)
        driver.join(tasks)
        driver.start()
        return driver

    def _place(self, node: Node, fetcher: Fetching | None, about: Mapping[str, str]) -> Driver:
        """A process is there; its program does not run yet."""
        driver = self.DRIVER(self.kernel, node, fetcher)
        driver.on_end = lambda ended: self._ended(node, ended)
        self.nodes[node.name] = node
        self.drivers[node.name] = driver
        node.begin()
        process = self.plan.process_of(node.name)
        detail = {**about, "process": process} if process != node.name else dict(about)
        self.kernel.write(node.name, EventKind.STARTED, detail, group=node.group)
        self._aim_faults_at(driver)
        return driver

    def _aim_faults_at(self, driver: Driver) -> None:
        """Let the nemesis see the steps of a member if a fault waits for one of them."""
        name = driver.node.name
        if self.nemesis.steps_of(name):
            driver.before = partial(self.nemesis.reach, name, "before")
            driver.after = partial(self.nemesis.reach, name, "after_reply")

    def _ended(self, node: Node, ended: Ended) -> None:
        """A program is over, and its process with it, once what it holds is in safety."""
        fetcher = self.fetchers.get(node.name)
        if node.name in self.brokers:
            self.brokers[node.name][0].close(node.name, lambda: self._bury_ended(node))
        elif isinstance(fetcher, StreamFetcher):
            fetcher.close(lambda: self._bury_ended(node))
        elif node.name in self.producers.running:
            self.producers.running[node.name].close(lambda: self._bury_ended(node))
        else:
            self._bury_ended(node)

    def _bury_ended(self, node: Node) -> None:
        """A process that has ended by itself is gone."""
        self._bury(node)
        call = self._on_end.pop(node, None)
        if call is not None:
            self.kernel.after(0, lambda _: call(), None)

    def _bury(self, node: Node, lost: FaultEffect | None = None) -> None:
        """A process is gone; with `lost` its machine is gone as well."""
        if node.name in self.brokers:
            self.brokers[node.name][0].end(node.name, lost)
        self.producers.end(node.name)
        fetcher = self.fetchers.get(node.name)
        if fetcher is not None and fetcher.node is node:
            fetcher.stop()
        for cluster in self.clusters.values():
            cluster.logs.close_broker(node)
        node.kill()

    def kill(self, node: Node, why: str = "killed", lost: FaultEffect | None = None) -> None:
        """Kill a process, with all members in it; `lost` is the fault that takes its machine
        along."""
        for member in self.with_mates(node):
            self._kill(member, why, lost)

    def with_mates(self, node: Node) -> list[Node]:
        """Return the running members of the process in which a member runs."""
        names = self.plan.members_of(self.plan.process_of(node.name))
        return [mate for mate in map(self.running, names) if mate is not None] or [node]

    def _kill(self, node: Node, why: str, lost: FaultEffect | None) -> None:
        assert node.client is not None, "every process has a client"
        self.kernel.write(
            node.name,
            EventKind.ENDED,
            {"why": why, "failed": True},
            session=node.client.session,
            group=node.group,
        )
        self._on_end.pop(node, None)
        self._bury(node, lost)

    # --- what the timeline may touch: watchkeeper.model.nemesis.world ------------------

    def now_us(self) -> int:
        """The moment of the run, in microseconds."""
        return self.kernel.now_us

    def at(self, due_us: int, call: Callable[[], object]) -> None:
        """Call this at that moment."""
        self.kernel.at(due_us, lambda _: call(), None)

    def write(
        self, node: str, kind: str, detail: Mapping[str, Any] = NOTHING, *, topic: str = ""
    ) -> None:
        """Write an event into the trace."""
        self.kernel.write(node, kind, detail, topic=topic)

    def later(self, effect: FaultEffect, delay_us: int, undo: Undo) -> None:
        """Undo an action of the timeline after a delay."""
        self.nemesis.later(effect, delay_us, undo)

    def running(self, name: str) -> Node | None:
        """Return the process of a member; None while it does not run."""
        node = self.nodes.get(name)
        return node if node is not None and node.is_alive else None

    def process(self, name: str) -> NodeTarget | None:
        """Return a process, or that of a member, as faults affect it; None if it does not run."""
        nodes = [node for node in map(self.running, self.plan.members_of(name)) if node]
        return NodeTarget(self, nodes[0]) if nodes else None

    def order(self, name: str, order: Command) -> bool:
        """Put an order into the inbox of a process; False if its program is over."""
        self.nodes[name].deliver(order)
        return self.nodes[name].runs_program

    def abandon(self, name: str) -> bool:
        """End the program of a process that runs; its client keeps the session alive."""
        node = self.nodes[name]
        if not node.runs_program:
            return False
        assert node.client is not None, "every process has a client"
        node.abandon()
        self.kernel.write(
            node.name, EventKind.ABANDONED, session=node.client.session, group=node.group
        )
        fetcher = self.fetchers.get(name)
        if fetcher is not None and fetcher.node is node:
            fetcher.stop()
        return True

    def when_ended(self, name: str, call: Callable[[], object]) -> None:
        """Call this once a process that runs now has ended by itself."""
        self._on_end[self.nodes[name]] = call

    def readdress(self, broker: str, host: str, port: int | None) -> None:
        """Give a broker another host, and another port unless that is None."""
        cluster, plan = self.brokers[broker]
        self.brokers[broker] = (cluster, replace(plan, host=host, port=port or plan.port))

    def produce(self, cluster: str, topic: str, load: Load, producers: str | None) -> Undo:
        """Send messages to a topic from now on: by these producers, or by the first."""
        if not self.plan.senders_to(cluster):
            return self.clusters[cluster].produce(topic, load)
        self.producers.produce(topic, load, producers, cluster)
        return partial(self.producers.cease, load)

    def ensemble_of(self, name: str) -> Ensemble:
        """Return the ensemble that a member uses, or that a server belongs to."""
        return self.cluster_of(name).ensemble

    def cluster_of(self, name: str) -> Cluster:
        """Return the cluster of a member or of a server."""
        for cluster in self.clusters.values():
            if name in (cluster.administrator, *(each.name for each in cluster.ensemble.servers)):
                return cluster
        if name in self.consumers:
            return self.clusters[self.consumers[name][0].cluster]
        if name in self.producers.plans:
            return self.clusters[self.producers.plans[name].cluster]
        return self.brokers[name][0]

    def brokers_but(self, name: str) -> list[str]:
        """Return the names of all brokers but this one."""
        return [broker for broker in self.brokers if broker != name]

    def files_of(self, broker: str) -> FileSystem:
        """Return the file system of a broker's host."""
        return self.brokers[broker][0].files_of(broker)


def simulate(
    plan: Plan,
    seed: int = 0,
    *,
    versions: Mapping[str, str] | None = None,
    tell: Tell | None = None,
    profile: Profile = DEFAULT,
    branch: Branch | None = None,
) -> Simulated:
    """Run a plan in simulation, with the latencies of a profile; the trace names its digest.

    With a `branch` it goes the way of this seed up to an event, and another way from there.

    Raises NotAnEffect or ProgramLoops for a user's program that breaks the rules, and
    Interrupted, with what there is so far, when the user has had enough.
    """
    world = World(plan, seed, profile)
    if branch is not None:
        branch_off(world.kernel, branch)
    digest = "" if profile == DEFAULT else profile.digest
    header = Header(
        plan.name, plan.variant, WORLD, seed, versions or {}, profile=digest, mix=mix_of(plan)
    )
    # The collector would look through everything again and again and find nothing: a world
    # holds on to itself while it runs, and is taken apart when it has run.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        world.run(tell)
    except KeyboardInterrupt:
        world.kernel.write("", EventKind.RUN_ENDED)
        raise Interrupted(_left_by(world, replace(header, partial=True))) from None
    finally:
        left = _left_by(world, header)
        take_apart(world)
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
