"""Who waits for whom: readers and writers of a log, and of something with one lock."""

from __future__ import annotations

from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.experiment.apparatus.programs import MB, messages
from watchkeeper.experiment.apparatus.rows import UNCHANGED, Outcome, Row
from watchkeeper.model.log.storage import Append, CreateFile, Read
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.storage.host_effects import GiveLock, Idle, Lock, TakeLock

OLD_BYTES = 4_000 * MB
"""What is on the disk alone, for readers that read from it."""
EACH_BYTES = 64 << 10
APPENDS = 100
EVERY_US = 2_000
READERS = 4


def blocking(machine: MachineProfile) -> Outcome:
    """Append without readers, and beside four that read from the disk; the same with a lock."""
    alone, beside = append_us(machine, 0), append_us(machine, READERS)
    locked_alone = append_us(machine, 0, has_lock=True)
    locked = append_us(machine, READERS, has_lock=True)
    single, four = warm_read_us(machine, 1), warm_read_us(machine, READERS)
    return Outcome(
        (
            Row("an append, without readers", alone, "us"),
            Row(
                "an append beside four readers against alone", beside / alone, "times", UNCHANGED
            ),
            Row("a read beside three others against alone", four / single, "times", UNCHANGED),
            Row("with one lock: an append beside four readers", locked, "us"),
            Row("with one lock: beside readers against alone", locked / locked_alone, "times"),
        ),
        (
            "The readers read only from the disk, so that a reader with the lock holds it "
            "for as long as the disk takes. The reads against one another are from memory.",
        ),
    )


def append_us(machine: MachineProfile, readers: int, *, has_lock: bool = False) -> float:
    """How long an append takes on average."""
    host = new_host(machine)
    lock = Lock() if has_lock else None
    for number in range(readers):
        host.storage.files.preload(f"old-{number}", messages(OLD_BYTES))
        host.start(host.process(), read_on(f"old-{number}", lock))
    taken: list[int] = []
    run(host, [host.start(host.process(), append_on(host, lock, taken))])
    return sum(taken) / len(taken) / 1000


async def append_on(host: Host, lock: Lock | None, taken_ns: list[int]) -> None:
    """Append at a steady pace, and note how long each append took."""
    await CreateFile("log")
    each = messages(EACH_BYTES)
    writer = host.processes[-1].threads[0]
    for _ in range(APPENDS):
        await Idle(EVERY_US)
        begin = writer.ready_ns
        await locked(lock, Append("log", each))
        taken_ns.append(writer.ready_ns - begin)


async def read_on(path: str, lock: Lock | None) -> None:
    """Read a file in order, over and over."""
    while True:
        for at in range(0, OLD_BYTES, EACH_BYTES):
            await locked(lock, Read(path, at, EACH_BYTES))


async def locked(lock: Lock | None, effect: Append | Read) -> None:
    """Do something with a lock, if there is one."""
    if lock is not None:
        await TakeLock(lock)
    await effect
    if lock is not None:
        await GiveLock(lock)


def warm_read_us(machine: MachineProfile, readers: int) -> float:
    """How long a read from memory takes, with so many readers at it."""
    host = new_host(machine)
    file = host.storage.files.preload("log", messages(100 * MB))
    host.storage.files.cache.put(file.cached, 0, 100 * MB // 4096)
    taken: list[int] = []
    run(host, [host.start(host.process(), read_some(host, at, taken)) for at in range(readers)])
    return sum(taken) / len(taken) / 1000


async def read_some(host: Host, number: int, taken_ns: list[int]) -> None:
    """Read at a steady pace, and note how long each read took."""
    reader = host.processes[number].threads[0]
    for turn in range(APPENDS):
        await Idle(EVERY_US)
        begin = reader.ready_ns
        await Read("log", turn * EACH_BYTES, EACH_BYTES)
        taken_ns.append(reader.ready_ns - begin)
