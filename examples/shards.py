"""An embedded group: members of an application share its work: python shards.py localhost:2181

The partitions of the topic `shards` stand for six parts of the work. No message is sent.
"""

import sys
from threading import Lock
from time import monotonic, sleep

from watchkeeper import Broker, Consumer

SHARDS = 6


class Worker:
    """One member, and the shards that it may work on."""

    def __init__(self, hosts, name):
        self.name = name
        self.shards = set()
        self.lock = Lock()
        self.consumer = Consumer(
            hosts,
            group="application",
            topics={"shards": 1},
            consumer_id=name,
            on_partitions_assigned=self.take,
            on_partitions_revoked=self.give_up,
        )

    def take(self, claims):
        """Begin to work on shards."""
        with self.lock:
            self.shards |= {claim.partition.name for claim in claims}

    def give_up(self, partitions):
        """Finish work on shards; no other member has them until this returns."""
        with self.lock:
            self.shards -= {partition.name for partition in partitions}


def wait_for(*workers, sizes):
    """Wait until the workers have so many shards, and print them."""
    until_s = monotonic() + 60
    while [len(worker.shards) for worker in workers] != sizes:
        if monotonic() > until_s:
            raise TimeoutError(f"the shards are not divided into {sizes}")
        sleep(0.05)
    for worker in workers:
        print(worker.name, "works on", ", ".join(sorted(worker.shards)))


def main(hosts):
    """One worker has all shards, two have three each, and the second has all at the end."""
    ann, ben = Worker(hosts, "ann"), Worker(hosts, "ben")
    with Broker(hosts, id=0, topics={"shards": SHARDS}):
        with ann.consumer:
            wait_for(ann, sizes=[SHARDS])
            ben.consumer.start()
            wait_for(ann, ben, sizes=[SHARDS // 2, SHARDS // 2])
        wait_for(ben, sizes=[SHARDS])
        ben.consumer.close()


if __name__ == "__main__":
    main(sys.argv[1])
