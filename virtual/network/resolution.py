"""Host names and addresses of a world."""

from __future__ import annotations

import socket as socket_module
from typing import Any

from watchkeeper.virtual.network.socket import LOOPBACK, world_network

_getaddrinfo = socket_module.getaddrinfo
_gethostbyname = socket_module.gethostbyname
_gethostname = socket_module.gethostname
_getfqdn = socket_module.getfqdn


def _address_of(host: Any) -> str:
    found = world_network()
    assert found is not None, "only worlds resolve here"
    scheduler, network = found
    assert scheduler.running is not None, "threads resolve names"
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return LOOPBACK
    if name == scheduler.running.process.host_name:
        return scheduler.running.process.address
    address = network.address_of(name)
    if address is None:
        raise socket_module.gaierror(
            socket_module.EAI_NONAME, f"Name or service not known: {name!r} is not of this world"
        )
    return address


def getaddrinfo(
    host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
) -> list[Any]:
    """The address of a host, as sockets take it."""
    if world_network() is None:
        return list(_getaddrinfo(host, port, family, type, proto, flags))
    number = int(port) if port is not None else 0
    return [
        (
            socket_module.AF_INET,
            socket_module.SOCK_STREAM,
            socket_module.IPPROTO_TCP,
            "",
            (_address_of(host), number),
        )
    ]


def gethostbyname(host: str, /) -> str:
    """The address of a host."""
    return _gethostbyname(host) if world_network() is None else _address_of(host)


def gethostname() -> str:
    """The name of the host of the process that runs."""
    found = world_network()
    if found is None or found[0].running is None:
        return _gethostname()
    return found[0].running.process.host_name


def getfqdn(name: str = "") -> str:
    """The whole name of a host."""
    if world_network() is None:
        return _getfqdn(name)
    return name or gethostname()
