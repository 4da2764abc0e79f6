"""Runs functions on virtual threads, without a ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper.virtual.network.network import Network
from watchkeeper.virtual.network.patches import PATCHES
from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.threads.patches import install
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.task import Policy
from watchkeeper.virtual.threads.thread import forget_threads, start_main

NS = 1_000_000_000


class Machine:
    """A scheduler with a network, and the processes of a test."""

    def __init__(self, policy: Policy | None = None, *, seed: int = 0) -> None:
        install(PATCHES)
        self.scheduler = Scheduler(policy or FirstInFirstOut(), seed=seed)
        self.network = Network(self.scheduler)
        self.scheduler.network = self.network
        self.results: dict[str, Any] = {}

    def process(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        """Start a process; its result is in `results`."""
        process = self.scheduler.add_process(name)

        def main() -> None:
            self.results[name] = function(*args)

        start_main(self.scheduler, process, main)

    def run(self, until_s: float = 100_000.0) -> dict[str, Any]:
        """Run to the end; raises what a thread has died of."""
        try:
            self.scheduler.run(int(until_s * NS))
            for _, error in self.scheduler.deaths:
                raise error
            return self.results
        finally:
            self.scheduler.tear_down()
            forget_threads(self.scheduler)


def in_virtual_time(
    function: Callable[[], Any], *, policy: Policy | None = None, seed: int = 0
) -> Any:
    """The result of a function that runs as a process of virtual time."""
    machine = Machine(policy, seed=seed)
    machine.process("main", function)
    return machine.run()["main"]
