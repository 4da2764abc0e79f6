"""The lock of a folder in which one process at a time may write."""

from __future__ import annotations

import fcntl
import os

from watchkeeper.real.errors import EnvironmentProblem


def lock_folder(root: str, held_by: str) -> int:
    """Lock a folder until the descriptor is closed or the process ends.

    `held_by` begins the error: `another broker works in`. Raises EnvironmentProblem where another
    process has the lock.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise EnvironmentProblem(
            f"{held_by} {root}; end that one, or choose another folder"
        ) from None
    return descriptor
