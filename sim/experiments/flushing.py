"""How often to flush: what it costs, and what a crash of the host takes."""

from __future__ import annotations

from dataclasses import dataclass

from model.log.contents import Contents, Series, whole
from model.log.storage import Append, CreateFile, Flush
from sim.experiments.programs import PAYLOAD_BYTES
from sim.experiments.rows import Outcome, Row, at_most
from sim.host import Host, new_host
from sim.machine import MachineProfile
from sim.work import Idle

RATE = 5_000
"""Messages a second that a producer sends, while crashes are tried."""
ENOUGH = 20_000
CRASHES = 8
LONGEST_US = 4_000_000


@dataclass(frozen=True, slots=True)
class Policy:
    """When to flush: after so many messages, or so much time."""

    name: str
    every_messages: int | None = None
    every_us: int | None = None
    risks: int | None = None
    """What may be lost at most, by the policy; None for whatever the kernel has not written."""
    set_of: int = 10
    """Messages in each append."""
    crash_s: tuple[int, int] = (1, 3)
    """Between which moments the host crashes."""


POLICIES = (
    Policy("flush every 10 messages", every_messages=10, risks=10),
    Policy("flush every 500 messages", every_messages=500, risks=500),
    Policy("flush every 5000 messages", every_messages=5_000, risks=5_000),
    Policy("flush every second", every_us=1_000_000, risks=RATE),
    Policy("no flush but the kernel's", set_of=100, crash_s=(40, 80)),
)


def policies(machine: MachineProfile) -> Outcome:
    """Append with each policy as fast as it goes, and crash a host under a steady load."""
    rows: list[Row] = []
    for policy in POLICIES:
        rows.append(Row(f"{policy.name}: rate", rate(machine, policy), "messages/s"))
        said = None if policy.risks is None else at_most(policy.risks)
        lost = max(lost_messages(machine, policy, seed) for seed in range(CRASHES))
        rows.append(Row(f"{policy.name}: lost at most", lost, "messages", said))
    return Outcome(
        tuple(rows),
        (
            f"{CRASHES} crashes each, of a host that takes {RATE:,} messages a second. Flushing "
            "by time bounds what is lost by the time between flushes and that of a flush. The "
            "kernel writes what is older than 30 s, and looks every 5 s.",
        ),
    )


class Log:
    """A file that is appended to and flushed by a policy."""

    def __init__(self, host: Host, policy: Policy) -> None:
        self.host = host
        self.policy = policy
        self.appended = 0

    async def write(self, *, paced: bool) -> None:
        """Append sets, at a pace or as fast as it goes, and flush after so many messages."""
        kernel, policy = self.host.kernel, self.policy
        await CreateFile("log")
        self.host.start(self.host.processes[0], self.flush())
        begin_us, count = kernel.now_us, policy.set_of
        while True:
            await Append("log", whole(Series("producer", self.appended, count, PAYLOAD_BYTES)))
            self.appended += count
            if policy.every_messages and self.appended % policy.every_messages == 0:
                await Flush("log")
            due_us = begin_us + self.appended * 1_000_000 // RATE
            if paced and due_us > kernel.now_us:
                await Idle(due_us - kernel.now_us)

    async def flush(self) -> None:
        """Flush after so much time."""
        while self.policy.every_us is not None:
            await Idle(self.policy.every_us)
            await Flush("log")


def rate(machine: MachineProfile, policy: Policy) -> float:
    """Messages a second, as fast as it goes."""
    host = new_host(machine)
    log = Log(host, policy)
    host.start(host.process(), log.write(paced=False))
    while log.appended < ENOUGH and host.kernel.now_us < LONGEST_US:
        host.kernel.step()
    return log.appended * 1e6 / host.kernel.now_us


def lost_messages(machine: MachineProfile, policy: Policy, seed: int) -> int:
    """How many messages a crash takes that the producer thinks are there."""
    host = new_host(machine, seed)
    log = Log(host, policy)
    host.start(host.process(), log.write(paced=True))
    first, last = policy.crash_s
    host.kernel.run_until(host.kernel.streams("crash").between(first * 10**6, last * 10**6))
    host.lose_power()
    file = host.storage.files.tree.files.get("log")
    left = (
        0
        if file is None or not file.size_bytes
        else whole_messages(file.read(0, file.size_bytes))
    )
    return log.appended - left


def whole_messages(contents: Contents) -> int:
    """How many messages there are before the first that is not whole."""
    count = 0
    assert not isinstance(contents, bytes), "a file of series is read as pieces"
    for piece in contents:
        entries, rest = divmod(piece.size_bytes, piece.series.entry_bytes)
        count += entries
        if rest:
            break
    return count
