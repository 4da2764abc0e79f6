"""Ordinary threaded code that uses kazoo, unmodified, in virtual time.

    from watchkeeper.virtual import faults, simulated

    @simulated(seeds=300, until_s=60, faults=[faults.lost_reply(), faults.pause()])
    def test_one_at_a_time(world):
        for name in "abc":
            world.process(name, work, world, name)  # opens KazooClient(hosts=world.hosts)

Where `watchkeeper.virtual` is imported nothing changes yet. The first world replaces the names of
threads, time, sockets and chance in this process, by ones that do what they always did outside of
a world. It needs kazoo and greenlet, the extra `virtual`.

  threads    threads under one clock, every switch decided; knows nothing of ZooKeeper
  schedule   who runs next: policies, and recorded schedules
  modules    preemption between lines, and copies of modules for each process
  network    sockets, and the links between processes
  zookeeper  the verified ZooKeeper on that network
  world      a test: processes, faults, properties, many seeds, the smallest failure
"""

from __future__ import annotations

from watchkeeper.virtual.threads.errors import Refused, Stuck, VirtualTimeError
from watchkeeper.virtual.world import checks, faults
from watchkeeper.virtual.world.replay import replay
from watchkeeper.virtual.world.simulated import Violation, simulated
from watchkeeper.virtual.world.world import World

__all__ = [
    "Refused",
    "Stuck",
    "Violation",
    "VirtualTimeError",
    "World",
    "checks",
    "faults",
    "replay",
    "simulated",
]
