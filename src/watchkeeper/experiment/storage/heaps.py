"""A heap full of messages: what it takes, how long it stands still, what a restart costs."""

from __future__ import annotations

from itertools import pairwise

from watchkeeper.experiment.apparatus.heap import OBJECTS_A_MESSAGE, Heap, message_bytes
from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.experiment.apparatus.programs import MB, append_all, messages, read_all, took_s
from watchkeeper.experiment.apparatus.rows import Outcome, Row, about, at_least, at_most
from watchkeeper.model.log.storage import Read
from watchkeeper.sim.disk.host_costs import GIB, MachineProfile
from watchkeeper.sim.engine.random_streams import Stream
from watchkeeper.sim.storage.file_contents import zeros
from watchkeeper.sim.storage.host_effects import Compute, Idle

PAYLOADS = (100, 200, 1000)
HEAPS_GIB = (1, 2, 4, 8, 16)
BATCH = 20_000
"""Messages that are put into a heap at a time."""
SESSION_TIMEOUT_S = 6
"""Of a consumer or a broker, by default."""
BEAT_US = 100_000


def overhead(machine: MachineProfile) -> Outcome:
    """Keep messages as objects, and fill heaps of several sizes with them."""
    rows = [
        Row(
            f"heap against data, messages of {payload} bytes",
            message_bytes(payload) / payload,
            "times",
            at_least(2) if payload <= 200 else None,
        )
        for payload in PAYLOADS
    ]
    pauses = {size: longest_silence_s(machine, size * GIB) for size in HEAPS_GIB}
    rows += [Row(f"longest pause, heap of {size} GiB", s, "s") for size, s in pauses.items()]
    rows.append(
        Row("pause of 16 GiB against 1 GiB", pauses[16] / pauses[1], "times", at_least(2))
    )
    rows.append(Row("heap whose pause ends a session of 6 s", zombie_gib(machine), "GiB"))
    return Outcome(
        tuple(rows),
        ("A pause is a collection of the whole heap by one thread, with all objects alive.",),
    )


def longest_silence_s(machine: MachineProfile, heap_bytes: int, payload: int = 200) -> float:
    """Fill a heap to the last message; for how long a thread of the process was not heard."""
    host = new_host(machine)
    process = host.process()
    heap = Heap(host, process, heap_bytes)
    beats: list[int] = []
    filling = host.start(process, fill(heap, payload))
    host.start(process, beat(host, beats))
    run(host, [filling])
    assert heap.pauses_us, "a heap that is full is collected"
    host.kernel.run_until(process.stands_until_us + 2 * BEAT_US)
    return max(late - early for early, late in pairwise(beats)) / 1e6


async def fill(heap: Heap, payload: int) -> None:
    """Keep messages as long as they fit, and then ask for a little more."""
    while heap.fits(BATCH, payload):
        heap.put(BATCH, payload)
        await Idle(1000)
    heap.drop(BATCH, payload)
    heap.put(BATCH, payload)


async def beat(host: Host, beats: list[int]) -> None:
    """Give a sign of life again and again."""
    while True:
        beats.append(host.kernel.now_us)
        await Idle(BEAT_US)


def zombie_gib(machine: MachineProfile) -> float:
    """The size from which on a pause is longer than a session, to a tenth of a GiB."""
    low, high = 0, 10_000
    while high - low > 1:
        middle = (low + high) // 2
        messages_kept = middle * GIB // 10 // message_bytes(200)
        live = messages_kept * message_bytes(200)
        host = new_host(machine)
        heap = Heap(host, host.process(), live + 1)
        heap.put(messages_kept, 200)
        heap.collect()
        low, high = (
            (low, middle) if heap.pauses_us[0] > SESSION_TIMEOUT_S * 1e6 else (middle, high)
        )
    return high / 10


# --- after a restart -------------------------------------------------------------------

CACHE_BYTES = 10_000 * MB
PART_BYTES = 1_000 * MB
"""As much of it is simulated; the rest takes as long in proportion."""
OBJECT_BYTES = 64 << 10
"""The size of one read after a cache miss."""
MISSES = 1_000


def warming(machine: MachineProfile) -> Outcome:
    """Start a process again, once with a cache of its own and once without."""
    in_order = CACHE_BYTES / PART_BYTES * loading_s(machine)
    on_demand = CACHE_BYTES / (MISSES * OBJECT_BYTES) * missing_s(machine)
    rate, from_disk = after_restart(machine)
    return Outcome(
        (
            Row("10 GB of a process, read in order", in_order, "s", about(600)),
            Row("10 GB of a process, allocated on demand", on_demand, "s", about(600)),
            Row(
                "read from the disk after a restart, with a pagecache",
                from_disk,
                "MB",
                at_most(0),
            ),
            Row("rate of the first reads, with a pagecache", rate / MB, "MB/s"),
        ),
        (
            "The page's ten minutes are 17 MB/s. A cache loaded in order is faster than that; "
            "one that is filled by single requests for its entries of 64 KiB can be slower.",
        ),
    )


def loading_s(machine: MachineProfile) -> float:
    """How long it takes to read messages in order and make objects of them."""
    host = new_host(machine)
    host.storage.files.preload("log", messages(PART_BYTES))
    objects_ns = OBJECTS_A_MESSAGE * machine.access_ns
    return took_s(host, load("log", MB // 200 * objects_ns))


async def load(path: str, making_ns: int) -> None:
    """Read a file in order, and make objects of what is read."""
    for at in range(0, PART_BYTES, MB):
        await Read(path, at, MB)
        await Compute(making_ns)


def missing_s(machine: MachineProfile) -> float:
    """Return the seconds to read entries at random places, as cache misses do."""
    host = new_host(machine)
    host.storage.files.preload("log", zeros(CACHE_BYTES))
    return took_s(host, miss(host.kernel.streams("places")))


async def miss(chance: Stream) -> None:
    """Read entries at places of chance."""
    for _ in range(MISSES):
        place = chance.below(CACHE_BYTES // OBJECT_BYTES) * OBJECT_BYTES
        await Read("log", place, OBJECT_BYTES)


def after_restart(machine: MachineProfile) -> tuple[float, float]:
    """Write, end the process, start another that reads: bytes a second, and MB from the disk."""
    host = new_host(machine)
    writer = host.process()
    run(host, [host.start(writer, append_all("log", PART_BYTES, messages(MB)))])
    host.kill(writer)
    rate = PART_BYTES / took_s(host, read_all("log", PART_BYTES, MB))
    return rate, host.storage.files.reader.device_bytes / MB
