"""The names of the network that virtual time replaces."""

from __future__ import annotations

import fcntl
import os
import select
import selectors
import socket

from watchkeeper.virtual.network import descriptors, polling, resolution
from watchkeeper.virtual.network.socket import Socket
from watchkeeper.virtual.network.socket_pair import socketpair
from watchkeeper.virtual.threads.patches import Patch

PATCHES: tuple[Patch, ...] = (
    Patch("socket", "socket", Socket),
    Patch("socket", "socketpair", socketpair),
    Patch("socket", "getaddrinfo", resolution.getaddrinfo),
    Patch("socket", "gethostbyname", resolution.gethostbyname),
    Patch("socket", "gethostname", resolution.gethostname),
    Patch("socket", "getfqdn", resolution.getfqdn),
    Patch("fcntl", "fcntl", descriptors.fcntl),
    *((Patch("os", "sendfile", descriptors.sendfile),) if hasattr(os, "sendfile") else ()),
    Patch("os", "get_blocking", descriptors.get_blocking),
    Patch("os", "set_blocking", descriptors.set_blocking),
    Patch("select", "select", polling.select),
    Patch("select", "poll", polling.poll),
    *((Patch("select", "epoll", polling.epoll),) if hasattr(select, "epoll") else ()),
    *(Patch("selectors", name, kind) for name, kind in polling.SELECTORS.items()),
)
"""Names of `socket`, `select` and `selectors` -> what stands for them."""

_LOADED = (fcntl, os, select, selectors, socket)
