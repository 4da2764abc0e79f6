"""A front that makes a ZooKeeper of today look like one before 3.6.

It answers the four-letter word `srvr` with an old version, or with nothing, and closes a
connection on which opcode 103 arrives, as servers of 3.3 and 3.5 do.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

from tests.support.live.front import Front, pass_on

GET_EPHEMERALS = 103
SIZE = struct.Struct(">i")


class OldServer(Front):
    """Such a front; use it with `with`."""

    def __init__(self, server: str, *, version: str | None = "3.5.10") -> None:
        """`version` is what it says it is; None: it does not tell."""
        super().__init__(server)
        self.version = version
        self.hung_up = 0
        """How often a client has made the request that it does not know."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the four-letter word, or pass a session on."""
        first = await reader.readexactly(4)
        if first == b"srvr":
            if self.version is not None:
                writer.write(
                    f"Zookeeper version: {self.version}-a32c71, built on 2022\n".encode()
                )
            writer.close()
            return
        from_server, to_server = await asyncio.open_connection(self.host, self.port)
        try:
            await asyncio.gather(
                self._requests(first, reader, to_server, writer.close),
                pass_on(from_server, writer),
            )
        except (ConnectionError, asyncio.IncompleteReadError):
            to_server.close()
            writer.close()

    async def _requests(
        self,
        size: bytes,
        reader: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        hang_up: Callable[[], None],
    ) -> None:
        """Pass frames on; the first one opens the session and has no opcode."""
        is_first = True
        while True:
            frame = await reader.readexactly(SIZE.unpack(size)[0])
            if not is_first and SIZE.unpack_from(frame, 4)[0] == GET_EPHEMERALS:
                self.hung_up += 1
                hang_up()
                to_server.close()
                return
            to_server.write(size + frame)
            is_first = False
            size = await reader.readexactly(4)
