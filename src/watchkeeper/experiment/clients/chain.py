"""A chain of nodes that lead to a slow consumer: each pushes to the next, or pulls from the last.

A node that pushes holds what the next one has no room for, and a node without room takes nothing.
So what piles up fills one node after the other, against the stream, until the source loses
messages. A node that pulls writes what it gets into its log, and the next one reads from there.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from watchkeeper.experiment.apparatus.heap import Heap
from watchkeeper.experiment.apparatus.host import Host
from watchkeeper.experiment.apparatus.programs import MB, PAYLOAD_BYTES, messages
from watchkeeper.experiment.apparatus.rows import Outcome, Row, at_most
from watchkeeper.model.log.storage import Append, CreateFile, Send
from watchkeeper.sim.disk.host_costs import GIB, Connection, MachineProfile
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.engine.random_streams import Streams
from watchkeeper.sim.storage.host_effects import Idle, Transmit

NODES = 3
SET_BYTES = MB
SETS_A_SECOND = 20
FOR_US = 150_000_000
SLOW_BYTES_PER_S = 5 * MB
HEAP_BYTES = GIB
POLL_US = 10_000
EACH = messages(SET_BYTES)
COUNT = sum(part.series.count for part in EACH)


class Node:
    """A node of the chain, on a host of its own."""

    def __init__(self, kernel: Kernel, machine: MachineProfile, number: int) -> None:
        self.host = Host(kernel, machine, f"node-{number}")
        self.process = self.host.process()
        self.heap = Heap(self.host, self.process, HEAP_BYTES)
        is_last = number == NODES - 1
        self.to: Connection = self.host.connection(
            takes_bytes_per_s=SLOW_BYTES_PER_S if is_last else None
        )
        self.waiting: deque[int] = deque()
        """Sets that came and that are not sent, or not written, yet."""
        self.sent = 0
        """Sets of its log that have left for the next node, or for the consumer."""

    def has_room(self) -> bool:
        """Whether a set can be held."""
        return self.heap.fits(COUNT, PAYLOAD_BYTES)

    def written(self) -> int:
        """Return how many sets are in the log."""
        return self.host.storage.files.tree.file("log").size_bytes // SET_BYTES

    def hold(self) -> None:
        """Hold a set until it is sent."""
        self.heap.put(COUNT, PAYLOAD_BYTES)
        self.waiting.append(COUNT)


class Source:
    """Produces at a steady rate, and loses what the first node does not take."""

    def __init__(self) -> None:
        self.lost = 0
        self.first_lost_us: int | None = None

    async def push(self, first: Node) -> None:
        """Hand set after set to the first node."""
        while True:
            await Idle(1_000_000 // SETS_A_SECOND)
            if first.has_room():
                first.hold()
                continue
            self.lost += 1
            if self.first_lost_us is None:
                self.first_lost_us = first.host.kernel.now_us


def chaining(machine: MachineProfile) -> Outcome:
    """Produce 20 MB/s for two minutes and a half; the end of the chain takes 5 MB/s."""
    source, pushed = push(machine)
    pulled = pull(machine)
    first_us = FOR_US if source.first_lost_us is None else source.first_lost_us
    held = sum(node.heap.live_bytes for node in pushed)
    pulled_held = sum(len(node.waiting) for node in pulled) * SET_BYTES
    behind = (pulled[0].written() - pulled[-1].sent) / SETS_A_SECOND
    wanted = SETS_A_SECOND * FOR_US // 1_000_000
    lost = sum(one.sent - two.written() - len(two.waiting) for one, two in pairwise(pulled))
    return Outcome(
        (
            Row("push: memory that the nodes hold at the end", held / MB, "MB"),
            Row("push: the source loses the first set after", first_us / 1e6, "s"),
            Row(f"push: sets lost, of {wanted:,}", source.lost, "sets"),
            Row("pull: memory that the nodes hold at the end", pulled_held / MB, "MB"),
            Row("pull: sets lost between the logs", lost, "sets", at_most(0)),
            Row("pull: the slow one is behind by", behind, "s"),
        ),
        (
            f"Each of {NODES} nodes that push has a heap of {HEAP_BYTES // GIB} GiB. The last "
            "one is full first; then each one before it.",
        ),
    )


def _nodes(machine: MachineProfile) -> list[Node]:
    kernel = Kernel(Streams(0), DEFAULT)
    return [Node(kernel, machine, number) for number in range(NODES)]


# --- push ------------------------------------------------------------------------------


def push(machine: MachineProfile) -> tuple[Source, list[Node]]:
    """Let each node push to the next."""
    nodes, source = _nodes(machine), Source()
    nodes[0].host.start(nodes[0].host.process(), source.push(nodes[0]))
    for node, following in zip(nodes, [*nodes[1:], None], strict=True):
        node.host.start(node.process, _relay(node, following))
    nodes[0].host.kernel.run_until(FOR_US)
    return source, nodes


async def _relay(node: Node, following: Node | None) -> None:
    """Send set after set, as soon as the next node has room."""
    while True:
        if not node.waiting or (following is not None and not following.has_room()):
            await Idle(POLL_US)
            continue
        await Transmit(EACH, node.to)
        node.heap.drop(node.waiting.popleft(), PAYLOAD_BYTES)
        if following is not None:
            following.hold()


# --- pull ------------------------------------------------------------------------------


def pull(machine: MachineProfile) -> list[Node]:
    """Let each node read from the log of the one before, and write a log of its own."""
    nodes = _nodes(machine)
    nodes[0].host.start(nodes[0].process, _produce())
    for node, following in zip(nodes, [*nodes[1:], None], strict=True):
        node.host.start(node.process, _serve(node, following))
        if node is not nodes[0]:
            node.host.start(node.process, _write(node))
    nodes[0].host.kernel.run_until(FOR_US)
    return nodes


async def _produce() -> None:
    await CreateFile("log")
    while True:
        await Append("log", EACH)
        await Idle(1_000_000 // SETS_A_SECOND)


async def _serve(node: Node, following: Node | None) -> None:
    """Send what the log has to the one that asks, set by set."""
    at = 0
    await Idle(POLL_US)
    while True:
        sent = await Send("log", at, SET_BYTES, node.to)
        if not sent:
            await Idle(POLL_US)
            continue
        at += sent
        node.sent += 1
        if following is not None:
            following.waiting.append(sent)


async def _write(node: Node) -> None:
    """Write what came into the log."""
    await CreateFile("log")
    while True:
        if node.waiting:
            await Append("log", EACH)
            node.waiting.popleft()
        else:
            await Idle(POLL_US)
