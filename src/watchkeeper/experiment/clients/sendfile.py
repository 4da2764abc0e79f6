"""From a file to the network: with four copies and two calls, or with two and one."""

from __future__ import annotations

from dataclasses import replace

from watchkeeper.experiment.apparatus.host import Host, new_host
from watchkeeper.experiment.apparatus.programs import MB, messages, took_s
from watchkeeper.experiment.apparatus.rows import Outcome, Row, about, at_least, at_most
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.storage import Append, CreateFile, NoSuchFile, Read, Send
from watchkeeper.sim.disk.host_costs import Connection, MachineProfile
from watchkeeper.sim.storage.host_effects import Delivered, Idle, Transmit
from watchkeeper.sim.storage.pagecache import pages_of

TOTAL_BYTES = 200 * MB
CHUNK_BYTES = 256 << 10
NO_LIMIT = 10**15
"""Bytes a second of a network that is never in the way."""


def copying(machine: MachineProfile) -> Outcome:
    """Send a file by reading and writing, and with sendfile."""
    copied, sent = counted(machine, sends=False), counted(machine, sends=True)
    fast = replace(machine, network_bytes_per_s=NO_LIMIT)
    slow_rate, fast_rate = one_core_rate(fast, sends=False), one_core_rate(fast, sends=True)
    return Outcome(
        (
            Row("read and write: copies, those of devices too", copied[0], "a byte", about(4)),
            Row("read and write: system calls", copied[1], "a chunk", about(2)),
            Row("sendfile: copies, those of devices too", sent[0], "a byte", about(2)),
            Row("sendfile: system calls", sent[1], "a chunk", about(1)),
            Row("read and write: by one core, from memory", slow_rate / MB, "MB/s"),
            Row("sendfile: by one core, from memory", fast_rate / MB, "MB/s"),
            Row("sendfile against read and write", fast_rate / slow_rate, "times", at_least(1)),
            Row("read and write: core, at the rate of the network", copied[2], "%"),
            Row("sendfile: core, at the rate of the network", sent[2], "%"),
        ),
        ("Copies and calls are counted while a file is sent once from the disk to the network.",),
    )


async def send_all(path: str, to: Connection, *, sends: bool) -> None:
    """Send a file, chunk by chunk."""
    for at in range(0, TOTAL_BYTES, CHUNK_BYTES):
        if sends:
            await Send(path, at, CHUNK_BYTES, to)
        else:
            contents: Contents = await Read(path, at, CHUNK_BYTES)
            await Transmit(contents, to)
    await Delivered(to)


def counted(machine: MachineProfile, *, sends: bool) -> tuple[float, float, float]:
    """Send what is on the disk: copies a byte, calls a chunk, and per cent of a core."""
    host = new_host(machine)
    host.storage.files.preload("log", messages(TOTAL_BYTES))
    to = host.connection()
    took_s(host, send_all("log", to, sends=sends))
    moved = host.storage.files.reader.device_bytes + host.machine.copied_bytes + to.sent_bytes
    chunks = -(-TOTAL_BYTES // CHUNK_BYTES)
    busy_s = host.machine.cores.busy_ns / 1e9
    share = 100 * busy_s / (to.sent_bytes / machine.network_bytes_per_s)
    return moved / to.sent_bytes, host.machine.calls / chunks, share


def one_core_rate(machine: MachineProfile, *, sends: bool) -> float:
    """Bytes a second that one thread sends from memory."""
    host = new_host(machine)
    warm(host, "log", TOTAL_BYTES)
    return TOTAL_BYTES / took_s(host, send_all("log", host.connection(), sends=sends))


def warm(host: Host, path: str, size_bytes: int) -> None:
    """Have a file on the disk and in memory."""
    file = host.storage.files.preload(path, messages(size_bytes))
    host.storage.files.cache.put(file.cached, *pages_of(0, size_bytes))


# --- many consumers --------------------------------------------------------------------

CONSUMERS = (1, 10, 50)
PART = 20
"""The producer writes a twentieth of what the network carries."""
FOR_US = 2_000_000
POLL_US = 1_000


def consumers(machine: MachineProfile) -> Outcome:
    """Let more and more consumers read what one producer writes."""
    rows: list[Row] = []
    for count in CONSUMERS:
        share, _, _ = consumed(machine, count, sends=True)
        claimed = at_least(90) if count > PART else None
        rows.append(Row(f"{count} reading: of what the network carries", share, "%", claimed))
    many = CONSUMERS[-1]
    _, from_disk, cores = consumed(machine, many, sends=True)
    share, _, copying_cores = consumed(machine, many, sends=False)
    return Outcome(
        (
            *rows,
            Row(f"{many} reading: from the disk", from_disk / MB, "MB", at_most(0)),
            Row(f"{many} reading: cores", cores, "%"),
            Row(f"{many} reading without sendfile: of the network", share, "%"),
            Row(f"{many} reading without sendfile: cores", copying_cores, "%"),
        ),
        (f"The producer writes 1/{PART} of the network's bandwidth; 100 % is one core.",),
    )


def consumed(machine: MachineProfile, count: int, *, sends: bool) -> tuple[float, int, float]:
    """Of the network in per cent, bytes read from the disk, and of a core in per cent."""
    host = new_host(machine)
    host.storage.has_sendfile = sends
    process = host.process()
    each_us = CHUNK_BYTES * PART * 1_000_000 // machine.network_bytes_per_s
    host.start(process, produce(each_us))
    readers = [host.connection() for _ in range(count)]
    for to in readers:
        host.start(process, consume(to))
    host.kernel.run_until(FOR_US)
    sent = host.machine.network_out.busy_ns / (FOR_US * 1000)
    cores = host.machine.cores.busy_ns / (FOR_US * 1000)
    return 100 * min(sent, 1.0), host.storage.files.reader.device_bytes, 100 * cores


async def produce(each_us: int) -> None:
    """Write at a steady pace."""
    await CreateFile("log")
    each = messages(CHUNK_BYTES)
    while True:
        await Append("log", each)
        await Idle(each_us)


async def consume(to: Connection) -> None:
    """Ask for what there is, again and again."""
    at = 0
    while True:
        try:
            sent = await Send("log", at, CHUNK_BYTES, to)
        except NoSuchFile:
            sent = 0
        at += sent
        if not sent:
            await Idle(POLL_US)
