"""One ZooKeeper for many tests: each has a chroot of its own, and leaves nothing behind."""

from __future__ import annotations

import re
from itertools import count

from watchkeeper.testing.handle import Handle
from watchkeeper.testing.zookeeper import ZooKeeper

_NUMBERS = count(1)
LONGEST_NAME = 60


class HandleOfTest(Handle):
    """A ZooKeeper below a chroot that lives as long as one test."""

    def __init__(self, zookeeper: ZooKeeper, name: str) -> None:
        super().__init__(zookeeper.servers, name=name, chroot=chroot_of(name))
        self._do("make", path=self.chroot)
        self._do("begin_history")

    def end(self) -> None:
        """End the faults and the clients of the test, and delete its znodes."""
        super().end()
        self._do("remove", path=self.chroot)


def chroot_of(name: str) -> str:
    """A path for a test that no other test of this server has."""
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:LONGEST_NAME]
    return f"/{word}-{next(_NUMBERS)}"
