"""A front for a server: a program of its own thread between clients and the server."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import Self

from tests.support.patience import PATIENCE_S


class Front:
    """The thread and the port of a front, which passes on what comes; use it with `with`."""

    context: ssl.SSLContext | None = None
    """With it the front speaks TLS to its clients."""

    def __init__(self, server: str) -> None:
        self.host, _, port = server.rpartition(":")
        self.port = int(port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        made = asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.context)
        server = asyncio.run_coroutine_threadsafe(made, self._loop).result(PATIENCE_S)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a client."""
        from_server, to_server = await asyncio.open_connection(self.host, self.port)
        await asyncio.gather(pass_on(reader, to_server), pass_on(from_server, writer))


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes until one of both ends is closed."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()
