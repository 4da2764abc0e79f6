"""What the connected server can do, found without a request that it may not know.

A server answers a request of an unknown kind out of order and closes the connection (3.4), or
closes it without an answer (3.3, 3.5). So a client must not try. The four-letter word `srvr` goes
over a connection of its own, and every version answers it unless an operator forbids it.
"""

from __future__ import annotations

import re

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

SINCE_EPHEMERALS = (3, 6)
"""The first version that lists the ephemerals of a session (opcode 103)."""


def lists_ephemerals(client: KazooClient) -> bool:
    """Whether the connected server knows `getEphemerals`; False where it does not tell."""
    try:
        answer = client.command(b"srvr")
    except (OSError, KazooException, AttributeError):  # kazoo's socket may be gone meanwhile
        return False
    version = re.match(r"Zookeeper version: (\d+)\.(\d+)", answer)
    return version is not None and (int(version[1]), int(version[2])) >= SINCE_EPHEMERALS
