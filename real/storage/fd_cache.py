"""A bounded number of open files, none of them closed while it is in use.

A log may have more files than a process may open. A thread that syncs or sends a file must not
find its descriptor closed and reused for another file. So every use of a file takes a lease. A
file that is deleted or evicted is closed when its last lease ends.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from types import TracebackType


class Lease:
    """A file that stays open during a `with`, which returns its descriptor."""

    __slots__ = ("_cache", "descriptor", "is_forgotten", "users")

    def __init__(self, home: FdCache, descriptor: int) -> None:
        self._cache = home
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
        self._cache.end(self)


class FdCache:
    """Open descriptors by path; the least recently used are evicted."""

    def __init__(self, open_file: Callable[[str], int], most: int) -> None:
        assert most > 0, "one file has to be open for a lease of it"
        self._open_file = open_file
        self.most = most
        self._leases: OrderedDict[str, Lease] = OrderedDict()
        self._lock = Lock()

    def lease(self, path: str) -> Lease:
        """Lease a file; raises OSError if it cannot be opened."""
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
        """End a lease; its descriptor must not be used any more."""
        with self._lock:
            lease.users -= 1
            if lease.is_forgotten and not lease.users:
                os.close(lease.descriptor)

    def forget(self, path: str) -> None:
        """Drop the descriptor of a path that from now on names another file, or none."""
        with self._lock:
            self._forget(path)

    def forget_all(self, below: str = "") -> None:
        """Drop the descriptors of all files below a folder, or of all files."""
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
