"""Test in virtual time that workers which use kazoo's lock work one at a time."""

import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from watchkeeper.virtual import faults, simulated

ROUNDS = 3


def work(world, name, done):
    """Take the lock, work, and try again whenever the session or the connection is lost."""
    client = KazooClient(hosts=world.hosts)
    client.start(timeout=60)
    while done.count(name) < ROUNDS:
        try:
            with client.Lock("/lock", name), world.section("work", client):
                time.sleep(0.5)
        except KazooException:
            time.sleep(0.2)
        else:
            done.append(name)
    client.stop()


@simulated(
    seeds=100,
    until_s=120,
    faults=[faults.lost_reply(), faults.expire(), faults.pause(), faults.crash()],
)
def test_one_at_a_time(world):
    """No two work at once, and each one that does not crash gets all turns."""
    done = []
    for name in ("ann", "ben", "cid"):
        world.process(name, work, world, name, done)

    def all_turns_are_taken():
        alive = [each.name for each in world.scheduler.processes if each.is_alive]
        return all(done.count(name) >= ROUNDS for name in alive)

    world.eventually(all_turns_are_taken, within_s=60)
