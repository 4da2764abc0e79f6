"""Consumers who are behind: as long as memory goes back that far, no consumer notices."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from statistics import mean
from typing import Any

from watchkeeper.experiment.apparatus.host import Host, new_host
from watchkeeper.experiment.apparatus.programs import MB, append_all, flushed, messages, took_s
from watchkeeper.experiment.apparatus.rows import Outcome, Row
from watchkeeper.model.log.storage import Append, Send
from watchkeeper.sim.disk.host_costs import Connection, MachineProfile
from watchkeeper.sim.storage.host_effects import Idle

MEMORY_BYTES = 128 * MB
WRITTEN_BYTES = 300 * MB
LAGS_PERCENT = (25, 45, 60, 90, 110, 200)
"""How far behind, in parts of the memory."""
SET_BYTES = 250_000
RATE = 40 * MB
"""Bytes a second that are written and, by each consumer, read."""
FOR_US = 6_000_000


def lagging(machine: MachineProfile) -> Outcome:
    """Let a consumer be behind by less than the memory, and by more."""
    small = replace(machine, memory_bytes=MEMORY_BYTES)
    seen = {percent: Behind(small, percent) for percent in LAGS_PERCENT}
    rows: list[Row] = []
    for percent, reads in seen.items():
        rows += [
            Row(f"behind by {percent} % of memory: from the disk", reads.from_disk, "a byte"),
            Row(
                f"behind by {percent} % of memory: a fetch takes", mean(reads.late.took_us), "us"
            ),
        ]
    near, far = seen[LAGS_PERCENT[0]], seen[LAGS_PERCENT[-1]]
    for what, beside, alone in (
        ("an append", far.writer, near.writer),
        ("a fetch at the end", far.prompt, near.prompt),
    ):
        ratio = mean(beside.took_us) / mean(alone.took_us)
        rows.append(Row(f"{what}, with one far behind against near", ratio, "times"))
    return Outcome(
        tuple(rows),
        (
            "One process writes 40 MB/s, one reads at the end, one reads older messages; "
            f"{MEMORY_BYTES // MB} MB of memory. A consumer that is behind by less than half of "
            "the memory never waits for the disk. It is half, not all: a late read counts as "
            "recent use, and evicts newer pages that are still to be read.",
        ),
    )


class Worker:
    """A consumer who does something at a steady pace."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.took_us: list[int] = []
        """How long each turn took."""

    async def work(self, turn: Callable[[int], Coroutine[Any, Any, Any]], begin: int) -> None:
        """Take a turn for each set of bytes, from this place on."""
        kernel, at = self.host.kernel, begin
        due_us = kernel.now_us
        while True:
            begin_us = kernel.now_us
            await turn(at)
            self.took_us.append(kernel.now_us - begin_us)
            at += SET_BYTES
            due_us += SET_BYTES * 1_000_000 // RATE
            if due_us > kernel.now_us:
                await Idle(due_us - kernel.now_us)


class Behind:
    """What is seen while a consumer is behind by so much."""

    def __init__(self, machine: MachineProfile, percent: int) -> None:
        self.host = new_host(machine)
        self.writer, self.prompt, self.late = (Worker(self.host) for _ in range(3))
        written = append_all("log", WRITTEN_BYTES, messages(SET_BYTES))
        took_s(self.host, flushed("log", written))
        before = self.host.storage.files.reader.device_bytes
        place = WRITTEN_BYTES - MEMORY_BYTES * percent // 100 // SET_BYTES * SET_BYTES
        process = self.host.process()
        self.host.start(process, self.writer.work(self._append, WRITTEN_BYTES))
        for worker, begin in ((self.prompt, WRITTEN_BYTES - SET_BYTES), (self.late, place)):
            to = self.host.connection()
            self.host.start(process, worker.work(partial(self._send, to), begin))
        self.host.kernel.run_until(self.host.kernel.now_us + FOR_US)
        read = self.host.storage.files.reader.device_bytes - before
        self.from_disk = read / (len(self.late.took_us) * SET_BYTES)

    async def _append(self, _: int) -> None:
        await Append("log", messages(SET_BYTES))

    async def _send(self, to: Connection, at: int) -> None:
        await Send("log", at, SET_BYTES, to)
