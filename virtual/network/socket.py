"""Sockets in virtual time: the class that stands for `socket.socket`.

`socket.socket(...)` makes a `VirtualSocket` within a world and a real socket elsewhere.
"""

from __future__ import annotations

import errno
import io
import os
import socket as socket_module
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from watchkeeper.virtual.network.endpoint import WINDOW_BYTES, Address, Endpoint, Listener
from watchkeeper.virtual.network.network import Network
from watchkeeper.virtual.network.socket_file import SocketFile
from watchkeeper.virtual.threads.current import current_scheduler
from watchkeeper.virtual.threads.errors import Refused
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.task import Task

RealSocket = socket_module.socket
LOOPBACK = "127.0.0.1"
ANY = ("", "0.0.0.0", "::")
# Plain numbers: the operators of enums are slow.
KIND_BITS = ~(
    int(getattr(socket_module, "SOCK_CLOEXEC", 0))
    | int(getattr(socket_module, "SOCK_NONBLOCK", 0))
)
STREAM = int(socket_module.SOCK_STREAM)
NONBLOCK = int(getattr(socket_module, "SOCK_NONBLOCK", 0))
DONTWAIT = int(getattr(socket_module, "MSG_DONTWAIT", 0))
PEEK = int(socket_module.MSG_PEEK)
READABLE, WRITABLE = attrgetter("is_readable"), attrgetter("is_writable")


def world_network() -> tuple[Scheduler, Network] | None:
    """The scheduler and the network of the thread that runs; None outside of a world."""
    scheduler = current_scheduler()
    if scheduler is None or scheduler.running is None or scheduler.network is None:
        return None
    return scheduler, scheduler.network


class _Kind(type):
    """Makes virtual sockets within a world; both kinds count as instances."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Socket:
            found = world_network()
            if found is None or kwargs.get("fileno") is not None:
                return RealSocket(*args, **kwargs)
            return VirtualSocket(*found, *args, **kwargs)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Socket:
            return isinstance(instance, RealSocket | VirtualSocket)
        return type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, other: type) -> bool:
        if cls is Socket:
            return issubclass(other, RealSocket)
        return type.__subclasscheck__(cls, other)


class Socket(RealSocket, metaclass=_Kind):
    """What stands for `socket.socket`."""


class VirtualSocket:
    """A TCP socket, or one of a pair, of a virtual process."""

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        family: int = socket_module.AF_INET,
        type: int = socket_module.SOCK_STREAM,
        proto: int = 0,
        fileno: int | None = None,
    ) -> None:
        if type != -1 and int(type) & KIND_BITS != STREAM:
            raise Refused(
                "only stream sockets exist in virtual time: datagrams and raw sockets would "
                "leave the world; keep that part out of the test, or replace it by a stub"
            )
        assert scheduler.running is not None, "sockets belong to processes"
        self.scheduler = scheduler
        self._network = network
        self.process = scheduler.running.process
        self.family = socket_module.AF_INET if family == -1 else family
        self.type = socket_module.SOCK_STREAM
        self.proto = 0 if proto == -1 else proto
        self._timeout: float | None = socket_module.getdefaulttimeout()
        if type != -1 and int(type) & NONBLOCK:
            self._timeout = 0.0
        self._local: Address = ("0.0.0.0", 0)
        self.endpoint: Endpoint | None = None
        """Its end of a connection that is made or under way."""
        self._listener: Listener | None = None
        self._is_connecting = False
        self._options: dict[tuple[int, int], Any] = {}
        self._files = 0
        self._is_closing = False
        self.descriptor = network.next_descriptor()
        self.process.descriptors[self.descriptor] = self
        self.process.at_end.append(self._really_close)
        self.watchers: list[Task] = []
        """Threads that poll it."""

    # --- waiting -----------------------------------------------------------------------

    def _wait(
        self, waiters: list[Task], is_ready: Callable[[], object], what: str, error: str
    ) -> None:
        """Wait until it is ready; raises what a real socket raises at the end of its timeout."""
        self.scheduler.switch_point()
        if not is_ready():
            self._block(waiters, is_ready, what, error)

    def _block(
        self, waiters: list[Task], is_ready: Callable[[], object], what: str, error: str
    ) -> None:
        if self._timeout == 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        scheduler = self.scheduler
        ends_ns = None if self._timeout is None else scheduler.now_ns + int(self._timeout * NS)
        task = scheduler.running
        assert task is not None, "sockets are used by threads"
        waiters.append(task)
        try:
            while not is_ready():
                self._check_open()
                left_ns = None if ends_ns is None else ends_ns - scheduler.now_ns
                if left_ns is not None and left_ns <= 0:
                    raise TimeoutError(error)
                scheduler.block(what, left_ns)
        finally:
            waiters.remove(task)

    def _check_open(self) -> None:
        if self.descriptor == -1:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _connected(self) -> Endpoint:
        self._check_open()
        endpoint = self.endpoint
        if endpoint is None or endpoint.peer is None:
            if endpoint is not None and endpoint.error is not None:
                self._raise_error(endpoint)
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return endpoint

    def _raise_error(self, endpoint: Endpoint) -> None:
        error, endpoint.error = endpoint.error, None
        if error is not None:
            raise OSError(error, os.strerror(error))

    # --- connecting --------------------------------------------------------------------

    def connect(self, address: Any) -> None:
        """Connect to an address; raises OSError if that fails, TimeoutError if it takes long."""
        if self.endpoint is None or not self._is_connecting:
            self._begin_connecting(address)
        endpoint = self.endpoint
        assert endpoint is not None, "it is connecting"
        if self._timeout == 0 and endpoint.peer is None and endpoint.error is None:
            raise BlockingIOError(errno.EINPROGRESS, os.strerror(errno.EINPROGRESS))
        try:
            self._wait(
                endpoint.waiters,
                lambda: endpoint.peer is not None or endpoint.error is not None,
                f"a connection to {address[0]}:{address[1]}",
                "timed out",
            )
        except TimeoutError:
            endpoint.is_closed = True
            self.endpoint, self._is_connecting = None, False
            raise
        self._is_connecting = False
        if endpoint.error is not None:
            self.endpoint = None
        self._raise_error(endpoint)

    def _begin_connecting(self, address: Any) -> None:
        self._check_open()
        if self.endpoint is not None:
            raise OSError(errno.EISCONN, os.strerror(errno.EISCONN))
        if not isinstance(address, tuple):
            raise Refused(
                f"a socket of the file system, {address!r}, cannot be reached in virtual time; "
                "only addresses of the world can"
            )
        remote = self._remote_of(address)
        if self._local[1] == 0:
            self._local = (self.process.address, self._network.next_port())
        endpoint = Endpoint(self._network, self._local, remote)
        self.endpoint, self._is_connecting = endpoint, True

        def refused() -> None:
            if not endpoint.is_closed:
                endpoint.error = errno.ECONNREFUSED
                endpoint.wake()

        self._network.connect(endpoint, refused)

    def _remote_of(self, address: tuple[Any, ...]) -> Address:
        host, port = str(address[0]), int(address[1])
        if host in ("localhost", "::1", *ANY) or host.startswith("127."):
            return self.process.address, port
        found = self._network.address_of(host)
        if found is None or not (self._network.is_known(found) or found.startswith("10.")):
            raise Refused(
                f"{host}:{port} is not of this world: virtual time has no connections to "
                "elsewhere; connect to world.hosts or to a process of the world"
            )
        return found, port

    def connect_ex(self, address: Any) -> int:
        """Connect; returns the number of the error, 0 for success."""
        try:
            self.connect(address)
        except TimeoutError:
            return errno.EAGAIN
        except OSError as error:
            return error.errno or errno.EINVAL
        return 0

    def bind(self, address: Any) -> None:
        """Take a port of the process's address; raises OSError if it is in use."""
        self._check_open()
        host, port = str(address[0]), int(address[1])
        local = (self.process.address, port or self._network.next_port())
        if self._network.listener_at(local) is not None:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self._shown_host = host if host and host not in ANY else local[0]
        self._local = local

    def listen(self, backlog: int = 128) -> None:
        """Let others connect."""
        self._check_open()
        if self._listener is None:
            if self._local[1] == 0:
                self._local = (self.process.address, self._network.next_port())
            if self._network.listener_at(self._local) is not None:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            self._listener = Listener(self._local, backlog)
            self._network.add(self._listener)

    def accept(self) -> tuple[VirtualSocket, Address]:
        """Take a connection that another process has made."""
        listener = self._listener
        self._check_open()
        if listener is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._wait(
            listener.waiters,
            lambda: listener.pending or listener.is_closed,
            "a client",
            "timed out",
        )
        self._check_open()
        endpoint = listener.pending.popleft()
        accepted = VirtualSocket(self.scheduler, self._network)
        accepted.endpoint, accepted._local = endpoint, endpoint.local
        accepted._timeout = socket_module.getdefaulttimeout()
        return accepted, endpoint.remote

    # --- bytes -------------------------------------------------------------------------

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive at most so many bytes; none at the end of the stream."""
        endpoint = self.endpoint
        if endpoint is None or endpoint.peer is None or self.descriptor == -1:
            endpoint = self._connected()
        if size < 0:
            raise ValueError("negative buffersize in recv")
        if flags and flags & DONTWAIT and not endpoint.is_readable:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        scheduler = self.scheduler  # `_wait`, written out: most find at once what they need
        scheduler.step = step = scheduler.step + 1
        if step >= scheduler.point_at:
            scheduler.take_point()
        if not endpoint.arrived and not endpoint.is_readable:
            self._block(endpoint.waiters, partial(READABLE, endpoint), "data", "timed out")
        self._check_open()
        if endpoint.arrived:
            return endpoint.peek(size) if flags and flags & PEEK else endpoint.read(size)
        self._raise_error(endpoint)
        return b""

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive into a buffer; returns how many bytes."""
        view = memoryview(buffer).cast("B")
        data = self.recv(nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    def recvfrom(self, size: int, flags: int = 0) -> tuple[bytes, Address]:
        """Receive, with the address of the other end."""
        return self.recv(size, flags), self._connected().remote

    def send(self, data: Any, flags: int = 0) -> int:
        """Send as much as there is room for; returns how many bytes."""
        endpoint = self.endpoint
        if endpoint is None or endpoint.peer is None or self.descriptor == -1:
            endpoint = self._connected()
        payload = data if type(data) is bytes else bytes(data)
        scheduler = self.scheduler
        scheduler.step = step = scheduler.step + 1
        if step >= scheduler.point_at:
            scheduler.take_point()
        if endpoint.under_way >= WINDOW_BYTES and endpoint.error is None:
            self._block(
                endpoint.waiters, partial(WRITABLE, endpoint), "room to send", "timed out"
            )
        if self.descriptor == -1:
            self._check_open()
        peer = endpoint.peer
        if endpoint.is_shut or (endpoint.is_paired and peer is not None and peer.is_closed):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        if endpoint.error is not None:
            self._raise_error(endpoint)
        if payload:
            endpoint.send(payload)
        return len(payload)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send everything."""
        self.send(data, flags)

    def sendmsg(
        self, buffers: Any, ancdata: Any = (), flags: int = 0, address: Any = None
    ) -> int:
        """Send the bytes of some buffers."""
        return self.send(b"".join(bytes(buffer) for buffer in buffers), flags)

    def shutdown(self, how: int) -> None:
        """Close one direction or both."""
        endpoint = self._connected()
        if how in (socket_module.SHUT_WR, socket_module.SHUT_RDWR):
            endpoint.shut()
        if how in (socket_module.SHUT_RD, socket_module.SHUT_RDWR):
            endpoint.take_end()

    # --- the end -----------------------------------------------------------------------

    def close(self) -> None:
        """Close it, once no file of `makefile` is open."""
        self._is_closing = True
        if not self._files:
            self._really_close()

    def _really_close(self) -> None:
        if self.descriptor == -1:
            return
        self.process.descriptors.pop(self.descriptor, None)
        self.descriptor = -1
        if self._really_close in self.process.at_end and self.process.is_alive:
            self.process.at_end.remove(self._really_close)
        if self._listener is not None:
            self._network.remove(self._listener)
            for task in list(self._listener.waiters):
                self.scheduler.wake(task)
        if self.endpoint is not None:
            self.endpoint.close()

    def detach(self) -> int:
        """A virtual socket cannot leave its object; raises Refused."""
        raise Refused("a socket of virtual time cannot be detached: it has no real descriptor")

    def __enter__(self) -> VirtualSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def makefile(
        self,
        mode: str = "r",
        buffering: int | None = None,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """The connection as a file."""
        raw = SocketFile(self, "r" in mode, "w" in mode)
        self._files += 1
        size = io.DEFAULT_BUFFER_SIZE if buffering is None or buffering < 0 else buffering
        if size == 0:
            return raw
        buffer: Any
        if "r" in mode and "w" in mode:
            buffer = io.BufferedRWPair(raw, raw, size)
        elif "w" in mode:
            buffer = io.BufferedWriter(raw, size)
        else:
            buffer = io.BufferedReader(raw, size)
        if "b" in mode:
            return buffer
        return io.TextIOWrapper(buffer, encoding, errors, newline)

    def file_closed(self) -> None:
        """A file of `makefile` is closed."""
        self._files -= 1
        if self._is_closing and not self._files:
            self._really_close()

    # --- options -----------------------------------------------------------------------

    def fileno(self) -> int:
        """Its virtual descriptor; -1 once it is closed."""
        return self.descriptor

    def settimeout(self, value: float | None) -> None:
        """How long its operations wait: None for ever, 0 not at all."""
        if value is not None and value < 0:
            raise ValueError("Timeout value out of range")
        self._timeout = value

    def gettimeout(self) -> float | None:
        """How long its operations wait."""
        return self._timeout

    timeout = property(gettimeout)

    def setblocking(self, flag: bool) -> None:
        """Whether its operations wait."""
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        """Whether its operations wait."""
        return self._timeout != 0

    def setsockopt(self, level: int, option: int, value: Any, length: int | None = None) -> None:
        """Keep an option; none of them has an effect on streams of a world."""
        self._check_open()
        self._options[level, option] = value

    def getsockopt(self, level: int, option: int, length: int = 0) -> Any:
        """An option that was set, the pending error, or 0."""
        self._check_open()
        if (level, option) == (socket_module.SOL_SOCKET, socket_module.SO_ERROR):
            endpoint = self.endpoint
            error = 0
            if endpoint is not None and endpoint.error is not None:
                error, endpoint.error = endpoint.error, None
            return error
        if (level, option) == (socket_module.SOL_SOCKET, socket_module.SO_TYPE):
            return int(socket_module.SOCK_STREAM)
        return self._options.get((level, option), 0)

    def getsockname(self) -> Any:
        """Its own address and port."""
        self._check_open()
        return "" if self.family == socket_module.AF_UNIX else self._local

    def getpeername(self) -> Any:
        """The address and port of the other end."""
        return self._connected().remote

    def get_inheritable(self) -> bool:
        """Whether children would inherit it; there are none."""
        return False

    def set_inheritable(self, inheritable: bool) -> None:
        """Processes of a world have no children."""

    # --- polling -----------------------------------------------------------------------

    @property
    def is_readable(self) -> bool:
        """Whether an accept does not wait."""
        return self._listener is not None and self._listener.is_readable

    @property
    def is_unconnected(self) -> bool:
        """Whether it neither listens nor connects."""
        return self.endpoint is None and self._listener is None

    @property
    def has_hung_up(self) -> bool:
        """Whether its connection is broken or ended; Linux says so of a new socket too."""
        return self.is_unconnected if self.endpoint is None else self.endpoint.is_over

    @property
    def waiters(self) -> list[Task]:
        """Where a thread that polls it adds itself."""
        if self.endpoint is not None:
            return self.endpoint.waiters
        return self.watchers if self._listener is None else self._listener.waiters

    def __repr__(self) -> str:
        return f"<virtual socket fd={self.descriptor}, {self._local}>"
