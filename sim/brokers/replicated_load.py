"""What is written to a replicated cluster: one process sends the loads of a timeline."""

from __future__ import annotations

from watchkeeper.model.actor.program import NO_PROGRAM
from watchkeeper.model.clients.producer.steady_load import SteadyLoad, Writer
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.process.tasks import Tasks


class ReplicatedLoad:
    """The process that writes to the topics of a cluster."""

    def __init__(self, plan: ClusterPlan, prefix: str, calls: Calls) -> None:
        node = Node(calls.kernel, plan.writer(prefix), NO_PROGRAM)
        node.begin()
        self.tasks = Tasks(node, calls)
        self.writer = Writer(plan.addresses)
        self.loads: dict[Load, SteadyLoad] = {}

    def produce(self, topic: str, load: Load) -> None:
        """Send a load to a topic from now on."""
        sending = self.loads[load] = SteadyLoad(
            self.writer, topic, load.rate_per_1000_s, load.acks, load.flows
        )
        self.tasks.start(f"write to {topic}", sending.run())

    def cease(self, load: Load) -> None:
        """Stop sending a load."""
        self.loads.pop(load).is_running = False
