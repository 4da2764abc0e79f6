"""A simulated world: clusters, members and the timeline, put together from a plan.

`simulate` runs a plan with a seed and returns what happened. The same plan and seed give
the same trace, event for event.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from model.administrator import Administrator, administrator
from model.faults import Effect
from model.plan import BrokerPlan, ConsumerPlan, GroupPlan, Plan
from model.program import Ended, Program
from model.programs import broker_program, consumer_program
from model.trace import Header, Trace
from sim.apart import take_apart
from sim.branching import Branch, branch_off
from sim.calls import Calls
from sim.cluster import Cluster
from sim.consuming import StreamFetcher, stream_fetcher
from sim.driver import Driver
from sim.fetcher import Fetcher
from sim.fetching import Fetching
from sim.kernel import Kernel, Network
from sim.nemesis import Nemesis
from sim.node import Node
from sim.producing import Producers
from sim.profile import DEFAULT, Profile
from sim.results import Results
from sim.sites import Sites
from sim.streams import Streams
from sim.threads import Threads

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
            one.name: Cluster(self.calls, one, number, is_alone=len(plan.clusters) == 1)
            for number, one in enumerate(plan.clusters)
        }
        self.nodes: dict[str, Node] = {}
        self.drivers: dict[str, Driver] = {}
        self.fetchers: dict[str, Fetcher | StreamFetcher] = {}
        self.results = Results()
        self.consumers = {member.node: (group, member) for group, member in plan.consumers()}
        self.brokers = {
            one.node: (cluster, one)
            for cluster in self.clusters.values()
            for one in cluster.plan.brokers
        }
        self.producers = Producers(self)
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
        for node in self.producers.plans:
            self.kernel.after(0, self.start, node)
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
        """Start the process of a consumer, a broker or a producer, unless it runs already."""
        running = self.nodes.get(name)
        if running is not None and running.is_alive:
            return None
        self.lives[name] = self.lives.get(name, 0) + 1
        if name in self.consumers:
            node = self._start_consumer(*self.consumers[name], new_id=new_id)
        elif name in self.producers.plans:
            node = self.producers.start(self.producers.plans[name])
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
        if cluster.sites is not None:
            return self._with_streams(node, program, group, plan)
        fetcher = Fetcher(
            node,
            self.network,
            cluster.logs,
            group.fetch_every_us,
            ends_on_error=plan.variant.fetch_errors == "end the fetcher",
        )
        self.fetchers[plan.node] = fetcher
        return self._run(node, fetcher, {"variant": plan.variant.name})

    def _with_streams(
        self, node: Node, program: Program, group: GroupPlan, plan: ConsumerPlan
    ) -> Node:
        """Start a consumer that is handed messages."""
        threads = Threads(node, self.calls)
        fetcher = stream_fetcher(program.me, plan.variant, group, threads, self.results)
        node.program = fetcher.connector.program if plan.program is None else program
        self.fetchers[plan.node] = fetcher
        self.run_with(node, threads, {"variant": plan.variant.name}, fetcher)
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
            self.kernel.process(driver.run())

        if cluster.sites is not None:
            cluster.sites.start(node, plan, ready, failed=lambda why: self.kill(node, why))
        else:
            self.kernel.process(driver.run())
            serves()
        return node

    def start_administrator(self, cluster: Cluster) -> None:
        """Start what creates the topics, in the layout that needs it."""
        if cluster.plan.layout == "0.7":
            return
        name = f"{cluster.prefix}administrator"
        me = Administrator(name, tuple(sorted(cluster.homes.items())))
        node = self.NODE(self.kernel, name, administrator(me))
        node.connect_to(cluster.ensemble, cluster.plan.session_timeout_ms, resends_watches=False)
        self._run(node, None, {})

    def _run(self, node: Node, fetcher: Fetching | None, about: Mapping[str, str]) -> Node:
        self.kernel.process(self._place(node, fetcher, about).run())
        return node

    def run_with(
        self,
        node: Node,
        threads: Threads,
        about: Mapping[str, str],
        fetcher: StreamFetcher | None = None,
    ) -> Driver:
        """Run a process whose program has threads beside it."""
        driver = self._place(node, fetcher, about)
        driver.join(threads)
        self.kernel.process(driver.run())
        return driver

    def _place(self, node: Node, fetcher: Fetching | None, about: Mapping[str, str]) -> Driver:
        """A process is there; its program does not run yet."""
        driver = self.DRIVER(self.kernel, node, fetcher)
        driver.on_end = lambda ended: self._ended(node, ended)
        self.nodes[node.name] = node
        self.drivers[node.name] = driver
        node.is_alive = True
        self.kernel.write(node.name, "starts", dict(about), group=node.group)
        self.nemesis.aim(driver)
        return driver

    def _ended(self, node: Node, ended: Ended) -> None:
        """A program is over, and its process with it, once what it holds is in safety."""
        sites = self._sites_of(node)
        fetcher = self.fetchers.get(node.name)
        if sites is not None:
            sites.close(node.name, lambda: self._bury(node))
        elif isinstance(fetcher, StreamFetcher):
            fetcher.close(lambda: self._bury(node))
        elif node.name in self.producers.running:
            self.producers.running[node.name].close(lambda: self._bury(node))
        else:
            self._bury(node)

    def _sites_of(self, node: Node) -> Sites | None:
        return self.brokers[node.name][0].sites if node.name in self.brokers else None

    def _bury(self, node: Node, lost: Effect | None = None) -> None:
        """A process is gone; with `lost` its machine is gone as well."""
        sites = self._sites_of(node)
        if sites is not None:
            sites.end(node.name, effect=lost)
        self.producers.end(node.name)
        fetcher = self.fetchers.get(node.name)
        if fetcher is not None and fetcher.node is node:
            fetcher.stop()
        for cluster in self.clusters.values():
            cluster.logs.close_broker(node)
        node.kill()

    def kill(self, node: Node, why: str = "killed", lost: Effect | None = None) -> None:
        """Kill a process; `lost` is the fault that takes its machine along."""
        assert node.client is not None, "every process has a client"
        self.kernel.write(
            node.name,
            "ends",
            {"why": why, "failed": True},
            session=node.client.session,
            group=node.group,
        )
        self._bury(node, lost)


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

    Raises NotAnAsk or ProgramLoops for a user's program that breaks the rules, and
    Interrupted, with what there is so far, when the user has had enough.
    """
    world = World(plan, seed, profile)
    if branch is not None:
        branch_off(world.kernel, branch)
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
