"""The command `zookeeper`: serve until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from watchkeeper.console.exit import HOLDS, USAGE, Stop
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.ensemble.words import VERSION
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.python_zookeeper.service import Service

FAILED = 1
LAST_PORT = 65_535
ENDS = (signal.SIGINT, signal.SIGTERM)


def run(
    *,
    port: int,
    servers: int,
    data: str | None,
    host: str,
    allow_remote: bool,
    settings: dict[str, Any],
) -> int:
    """Serve in this process; prints a line once it does.

    Raises Stop for what cannot be served, and at the end if the disk has failed.
    """
    ports = _ports(port, servers)
    folder = _folder(data)
    if not allow_remote:
        _check_loopback(host)
    try:
        known = {name: value for name, value in settings.items() if value is not None}
        problem = asyncio.run(_serve(ports, folder, host, EnsembleSettings(**known)))
    except (ValueError, EnvironmentProblem) as error:
        raise Stop(USAGE, str(error)) from None
    if problem is not None:
        raise Stop(FAILED, str(problem))
    return HOLDS


async def _serve(
    ports: tuple[int, ...], data: Path | None, host: str, settings: EnsembleSettings
) -> EnvironmentProblem | None:
    """Serve until a signal comes or the disk fails; returns what has failed."""
    ended: asyncio.Future[EnvironmentProblem | None] = asyncio.get_running_loop().create_future()

    def end(problem: EnvironmentProblem | None = None) -> None:
        if not ended.done():
            ended.set_result(problem)

    for number in ENDS:
        asyncio.get_running_loop().add_signal_handler(number, end)
    service = Service(
        len(ports), settings=settings, ports=ports, host=host, data=data, failed=end
    )
    await service.start()
    for notice in service.notices:
        print(notice, file=sys.stderr, flush=True)
    where = "in memory" if data is None else f"in {data}"
    hosts = ",".join(_address(host, port) for port in service.ports)
    print(f"ZooKeeper {VERSION} serves {hosts}, {where}; Ctrl-C or SIGTERM ends it", flush=True)
    problem = await ended
    await service.stop()
    return problem


def _ports(first: int, servers: int) -> tuple[int, ...]:
    if servers % 2 == 0:
        raise Stop(
            USAGE,
            f"--servers {servers}: an ensemble has an odd number of servers, since an even one "
            f"survives no more failures; start {servers - 1} or {servers + 1}",
        )
    if not first:
        return (0,) * servers
    if first + servers - 1 > LAST_PORT:
        raise Stop(
            USAGE,
            f"--port {first}: {servers} servers take the ports from this one on, and "
            f"{LAST_PORT} is the last; name one up to {LAST_PORT - servers + 1}",
        )
    return tuple(range(first, first + servers))


def _folder(data: str | None) -> Path | None:
    if data == "":
        raise Stop(USAGE, "--data is empty; name a folder, or leave --data out")
    return None if data is None else Path(data)


def _check_loopback(host: str) -> None:
    if host == "localhost":
        return
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        raise Stop(
            USAGE,
            f"--host {host!r} is no address; name one such as 127.0.0.1 or ::1, add "
            "--allow-remote for the name of a host, or leave --host out",
        ) from None
    if not is_loopback:
        raise Stop(
            USAGE,
            f"--host {host}: other machines could reach the server there, and it serves "
            "every client; add --allow-remote if that is meant, or leave --host out",
        )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
