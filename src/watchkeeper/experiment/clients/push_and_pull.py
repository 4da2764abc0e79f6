"""A slow consumer, who is pushed to or who pulls."""

from __future__ import annotations

from collections import deque

from watchkeeper.experiment.apparatus.heap import Heap, OutOfMemory
from watchkeeper.experiment.apparatus.host import Host, new_host
from watchkeeper.experiment.apparatus.programs import MB, messages
from watchkeeper.experiment.apparatus.rows import Outcome, Row
from watchkeeper.model.log.format.contents import size_of
from watchkeeper.model.log.storage import Append, CreateFile, NoSuchFile, Send
from watchkeeper.sim.disk.host_costs import GIB, Connection, MachineProfile
from watchkeeper.sim.storage.host_effects import Idle, Transmit

SET_BYTES = MB
SETS_A_SECOND = 20
FOR_US = 60_000_000
SLOW_BYTES_PER_S = 5 * MB
HEAP_BYTES = GIB
"""Of a broker that pushes; when it is full, it drops what it holds for the slow one."""
POLL_US = 10_000


class Consumer:
    """A consumer that takes messages at a rate of its own."""

    def __init__(self, host: Host, takes_bytes_per_s: int | None) -> None:
        self.to = host.connection(takes_bytes_per_s=takes_bytes_per_s)
        self.waiting: deque[int] = deque()
        """Sets that a broker which pushes holds for it."""
        self.dropped = 0


def pushing(machine: MachineProfile) -> Outcome:
    """Produce 20 MB/s for a minute, for one who takes all and one who takes 5 MB/s."""
    pushed, pulled = push(machine), pull(machine)
    wanted = SETS_A_SECOND * FOR_US // 1_000_000
    return Outcome(
        (
            Row("push: memory of the broker at the end", pushed.held_bytes / MB, "MB"),
            Row("push: sets dropped, of 1200", pushed.dropped, "sets"),
            Row("push: longest pause of the broker", pushed.pause_s, "s"),
            Row("push: the fast one got", 100 * pushed.fast / wanted, "%"),
            Row("pull: memory of the broker at the end", pulled.held_bytes / MB, "MB"),
            Row("pull: sets lost to the slow one", pulled.dropped, "sets"),
            Row("pull: the slow one is behind by", pulled.behind_s, "s"),
            Row("pull: the fast one got", 100 * pulled.fast / wanted, "%"),
        ),
        (
            "A broker that pushes holds the pending messages of each consumer, as objects in a "
            f"heap of {HEAP_BYTES // GIB} GiB. With pull it holds nothing: pending messages are "
            "in the log like all others.",
        ),
    )


class Told:
    """What came of it."""

    def __init__(self, host: Host, fast: Consumer, slow: Consumer, heap: Heap | None) -> None:
        self.held_bytes = 0 if heap is None else heap.live_bytes
        self.pause_s = max(heap.pauses_us, default=0) / 1e6 if heap is not None else 0.0
        self.dropped = slow.dropped
        self.fast = fast.to.sent_bytes / SET_BYTES
        written = host.storage.files.tree.file("log").size_bytes
        self.behind_s = (written - slow.to.sent_bytes) / (SETS_A_SECOND * SET_BYTES)


def pull(machine: MachineProfile) -> Told:
    """Let both ask for what there is."""
    host = new_host(machine)
    process = host.process()
    fast, slow = Consumer(host, None), Consumer(host, SLOW_BYTES_PER_S)
    host.start(process, write(host, ()))
    for consumer in (fast, slow):
        host.start(process, ask_for(consumer.to))
    host.kernel.run_until(FOR_US)
    return Told(host, fast, slow, None)


async def ask_for(to: Connection) -> None:
    """Ask for what there is, again and again."""
    at = 0
    while True:
        try:
            sent = await Send("log", at, SET_BYTES, to)
        except NoSuchFile:
            sent = 0
        at += sent
        if not sent:
            await Idle(POLL_US)


def push(machine: MachineProfile) -> Told:
    """Let the broker send each set to both, from what it holds for them."""
    host = new_host(machine)
    process = host.process()
    heap = Heap(host, process, HEAP_BYTES)
    fast, slow = Consumer(host, None), Consumer(host, SLOW_BYTES_PER_S)
    host.start(process, write(host, (fast, slow), heap))
    for consumer in (fast, slow):
        host.start(process, push_to(consumer, heap))
    host.kernel.run_until(FOR_US)
    return Told(host, fast, slow, heap)


async def write(host: Host, consumers: tuple[Consumer, ...], heap: Heap | None = None) -> None:
    """Append set after set, and keep each for the consumers that it is pushed to."""
    await CreateFile("log")
    each = messages(SET_BYTES)
    count = sum(part.series.count for part in each)
    due_us = host.kernel.now_us
    while True:
        await Append("log", each)
        for consumer in consumers:
            assert heap is not None, "what is pushed is held somewhere"
            hold(consumer, heap, count)
        due_us += 1_000_000 // SETS_A_SECOND
        if due_us > host.kernel.now_us:
            await Idle(due_us - host.kernel.now_us)


def hold(consumer: Consumer, heap: Heap, count: int) -> None:
    """Hold a set for a consumer, if there is room."""
    try:
        heap.put(count, 190)
    except OutOfMemory:
        consumer.dropped += 1
    else:
        consumer.waiting.append(count)


async def push_to(consumer: Consumer, heap: Heap) -> None:
    """Send what is held for a consumer, set by set."""
    each = messages(SET_BYTES)
    assert size_of(each) == SET_BYTES, "a set is of whole messages"
    while True:
        if consumer.waiting:
            await Transmit(each, consumer.to)
            heap.drop(consumer.waiting.popleft(), 190)
        else:
            await Idle(POLL_US)
