"""How often to flush: what it costs, and what a crash of the host takes."""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.experiment.apparatus.programs import ENTRY_BYTES, PAYLOAD_BYTES
from watchkeeper.experiment.apparatus.rows import Outcome, Row, at_most
from watchkeeper.model.log.format.contents import Series, whole_series
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import MakeFolder
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.storage.host_effects import Idle

RATE = 5_000
"""Messages a second that a producer sends, while crashes are tried."""
FOLDER = "clicks-0"
NEVER = 10**9
ENOUGH = 20_000
CRASHES = 6
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
        claimed = None if policy.risks is None else at_most(policy.risks)
        lost = max(lost_messages(machine, policy, seed) for seed in range(CRASHES))
        rows.append(Row(f"{policy.name}: lost at most", lost, "messages", claimed))
    return Outcome(
        tuple(rows),
        (
            f"{CRASHES} crashes each of a host that receives {RATE:,} messages a second into a "
            "broker's log. Flushing by time bounds the loss by the interval plus the duration of "
            "a flush. Every 5 s the kernel writes pages that are older than 30 s.",
        ),
    )


class Broker:
    """A log of messages, which is appended to and flushed by a policy."""

    def __init__(self, host: Host, policy: Policy) -> None:
        self.host = host
        self.policy = policy
        self.appended = 0
        self.began_us = 0
        """When the log was open."""

    async def write(self, *, paced: bool) -> None:
        """Append sets, at a pace or as fast as it goes."""
        kernel, policy = self.host.kernel, self.policy
        await MakeFolder(FOLDER)
        log, _ = await Log.open(FOLDER, settings_of(policy), was_clean=False)
        self.host.start(self.host.processes[0], self.flush(log))
        self.began_us, count = kernel.now_us, policy.set_of
        while True:
            await log.append(
                whole_series(Series("producer", self.appended, count, PAYLOAD_BYTES))
            )
            self.appended += count
            due_us = self.began_us + self.appended * 1_000_000 // RATE
            if paced and due_us > kernel.now_us:
                await Idle(due_us - kernel.now_us)

    async def flush(self, log: Log) -> None:
        """Flush after so much time."""
        while self.policy.every_us is not None:
            await Idle(self.policy.every_us)
            await log.flush()


def settings_of(policy: Policy) -> LogSettings:
    """What is set of the log."""
    return LogSettings(flush_messages=policy.every_messages or NEVER)


def rate(machine: MachineProfile, policy: Policy) -> float:
    """Messages a second, as fast as it goes."""
    host = new_host(machine)
    broker = Broker(host, policy)
    host.start(host.process(), broker.write(paced=False))
    while broker.appended < ENOUGH and host.kernel.now_us < LONGEST_US:
        host.kernel.step()
    return broker.appended * 1e6 / (host.kernel.now_us - broker.began_us)


def lost_messages(machine: MachineProfile, policy: Policy, seed: int) -> int:
    """How many messages a crash of the host takes that were appended."""
    host = new_host(machine, seed)
    broker = Broker(host, policy)
    host.start(host.process(), broker.write(paced=True))
    first, last = policy.crash_s
    host.kernel.run_until(host.kernel.streams("crash").between(first * 10**6, last * 10**6))
    host.lose_power()
    (left,) = run(host, [host.start(host.process(), recovered())])
    return max(broker.appended - int(left), 0)  # what was under way may have come to the disk


async def recovered() -> int:
    """Open the log again; how many messages are left."""
    log, _ = await Log.open(FOLDER, LogSettings(), was_clean=False)
    return log.high_watermark // ENTRY_BYTES
