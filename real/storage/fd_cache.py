"""Open files, a bounded number of them, none of them closed while somebody works with it.

A log may have more files than a process may hold open, and a thread that syncs or sends a
file must not find its descriptor closed and given to another file meanwhile. So whoever
works with a file takes a lease. A file that is deleted meanwhile, or that has to make room
for others, is closed when its last lease ends.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from types import TracebackType


class Lease:
    """One file that stays open at least for the body of a `with`, which gets its descriptor."""

    __slots__ = ("_home", "descriptor", "is_forgotten", "users")

    def __init__(self, home: Descriptors, descriptor: int) -> None:
        self._home = home
        self.descriptor = descriptor
        self.users = 0
        self.is_forgotten = False

    def __enter__(self) -> int:
        return self.descriptor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._home.end(self)


class Descriptors:
    """The descriptors of open files, by path; those that were not used for longest go first."""

    def __init__(self, open_file: Callable[[str], int], most: int) -> None:
        assert most > 0, "one file has to be open for a lease of it"
        self._open_file = open_file
        self.most = most
        self._leases: OrderedDict[str, Lease] = OrderedDict()
        self._lock = Lock()

    def lease(self, path: str) -> Lease:
        """Have a file open until the lease ends; OSError if it cannot be opened."""
        with self._lock:
            lease = self._leases.get(path)
            if lease is None:
                lease = self._leases[path] = Lease(self, self._open_file(path))
            else:
                self._leases.move_to_end(path)
            lease.users += 1
            while len(self._leases) > self.most:
                self._forget(next(iter(self._leases)))
            return lease

    def end(self, lease: Lease) -> None:
        """A lease is over: nobody who had it uses the descriptor any more."""
        with self._lock:
            lease.users -= 1
            if lease.is_forgotten and not lease.users:
                os.close(lease.descriptor)

    def forget(self, path: str) -> None:
        """What this path names is another file from now on, or none."""
        with self._lock:
            self._forget(path)

    def forget_all(self, below: str = "") -> None:
        """Forget every file below a folder, or every file there is."""
        with self._lock:
            for path in tuple(self._leases):
                if not below or path.startswith(f"{below}/"):
                    self._forget(path)

    def _forget(self, path: str) -> None:
        lease = self._leases.pop(path, None)
        if lease is None:
            return
        lease.is_forgotten = True
        if not lease.users:
            os.close(lease.descriptor)
