"""Run the protocol in `standby.py` on a real ZooKeeper: python live_standby.py localhost:2181"""

import sys
from contextlib import ExitStack
from time import monotonic, sleep

from standby import GROUP, STANDBY

from watchkeeper import Consumer


def member(hosts, name):
    """A member that prints when it begins to work, and when it stops."""
    return Consumer(
        hosts,
        group=GROUP,
        topics={"jobs": 1},
        layout="0.8",
        consumer_id=name,
        program=STANDBY,
        on_partitions_assigned=lambda claims: print(name, "works"),
        on_partitions_revoked=lambda partitions: print(name, "stops"),
    )


def wait_until(is_true, within_s=60):
    """Wait until something is true."""
    until_s = monotonic() + within_s
    while not is_true():
        if monotonic() > until_s:
            raise TimeoutError("no member took over")
        sleep(0.05)


def main(hosts):
    """Start two members; the first leaves, and the second takes over."""
    with ExitStack() as stack:
        ann = stack.enter_context(member(hosts, "ann"))
        wait_until(lambda: ann.owned)
        ben = stack.enter_context(member(hosts, "ben"))
        wait_until(lambda: ben.session == "connected")
        ann.close()
        wait_until(lambda: ben.owned)


if __name__ == "__main__":
    main(sys.argv[1])
