"""`select`, `poll`, `epoll` and the selectors, over virtual sockets."""

from __future__ import annotations

import errno
import os
import select as select_module
import selectors
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from watchkeeper.virtual.network.endpoint import WINDOW_BYTES
from watchkeeper.virtual.network.socket import VirtualSocket, world_network
from watchkeeper.virtual.threads.current import here
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.task import Task

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
EVENTS = (READ, WRITE, READ | WRITE)
NUMBERS = (int, float)
POLLIN, POLLOUT, POLLHUP = select_module.POLLIN, select_module.POLLOUT, select_module.POLLHUP
_new_tuple: Callable[..., Any] = tuple.__new__
_select = select_module.select
_real = {name: getattr(selectors, name) for name in dir(selectors) if name.endswith("Selector")}
_poll = select_module.poll
_epoll: Any = getattr(select_module, "epoll", None)


def _descriptor_of(source: Any) -> int:
    if isinstance(source, int):
        return source
    try:
        return int(source.fileno())
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"Invalid file object: {source!r}") from None


def _socket_of(scheduler: Scheduler, descriptor: int) -> VirtualSocket:
    assert scheduler.running is not None, "threads poll"
    sock = scheduler.running.process.descriptors.get(descriptor)
    if sock is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sock  # type: ignore[no-any-return]


Wanted = dict[VirtualSocket, int]
"""Socket -> the events that it is polled for."""
Ready = list[tuple[VirtualSocket, int]]


def _ready(wanted: Wanted) -> Ready:
    """The sockets that are ready, with their events; written out, since every wait comes here."""
    ready = []
    for sock, events in wanted.items():
        endpoint = sock.endpoint
        if endpoint is None:
            if sock.is_unconnected:
                found = events
            else:
                found = READ if events & READ and sock.is_readable else 0
        elif endpoint.error is not None:
            found = events
        elif endpoint.peer is None:
            continue
        else:
            found = 0
            if events & READ and (endpoint.arrived or endpoint.has_ended):
                found = READ
            if events & WRITE and endpoint.under_way < WINDOW_BYTES:
                found |= WRITE
        if found:
            ready.append((sock, found))
    return ready


def wait_for(scheduler: Scheduler, wanted: Wanted, timeout_ns: int | None) -> Ready:
    """Wait until some of the sockets are ready; returns these with their events.

    A timeout of 0 or less does not wait.
    """
    scheduler.step += 1
    if scheduler.step >= scheduler.point_at:
        scheduler.take_point()
    ready = _ready(wanted)
    if ready or timeout_ns == 0:
        return ready
    return _wait(scheduler, wanted, timeout_ns)


def _wait(scheduler: Scheduler, wanted: Wanted, timeout_ns: int | None) -> Ready:
    ends_ns = None if timeout_ns is None else scheduler.now_ns + timeout_ns
    task = scheduler.running
    assert task is not None, "threads poll"
    lists = []
    for sock in wanted:
        endpoint = sock.endpoint
        waiters = sock.waiters if endpoint is None else endpoint.waiters
        waiters.append(task)
        lists.append(waiters)
    ready: Ready = []
    try:
        left_ns = timeout_ns
        while left_ns is None or left_ns > 0:
            scheduler.block("a socket", left_ns)
            ready = _ready(wanted)
            if ready:
                break
            left_ns = None if ends_ns is None else ends_ns - scheduler.now_ns
    finally:
        for waiters in lists:
            if task in waiters:
                waiters.remove(task)
    return ready


def select(
    rlist: Iterable[Any],
    wlist: Iterable[Any],
    xlist: Iterable[Any],
    timeout: float | None = None,
    /,
) -> Any:
    """Wait until some of the sockets are ready."""
    found = world_network()
    if found is None:
        return _select(rlist, wlist, xlist, timeout)
    scheduler, _ = found
    if timeout is not None and timeout < 0:
        raise ValueError("timeout must be non-negative")
    readers, writers = list(rlist), list(wlist)
    wanted: Wanted = {}
    for sources, event in ((readers, READ), (writers, WRITE)):
        for source in sources:
            sock = _socket_of(scheduler, _descriptor_of(source))
            wanted[sock] = wanted.get(sock, 0) | event
    timeout_ns = None if timeout is None else int(timeout * NS)
    ready = {sock.fileno(): events for sock, events in wait_for(scheduler, wanted, timeout_ns)}
    return (
        [each for each in readers if ready.get(_descriptor_of(each), 0) & READ],
        [each for each in writers if ready.get(_descriptor_of(each), 0) & WRITE],
        [],
    )


Selected = tuple[list[VirtualSocket], list[VirtualSocket], list[Any]]
"""The sockets that can be read, those that can be written, and none with an exception."""


def read_or_wait(readers: list[VirtualSocket], timeout: float) -> list[VirtualSocket] | None:
    """Wait until one or two connections can be read; None if a longer way is needed.

    Most polls are such ones, and no other thread runs before them: then one look at each
    connection is enough, and what is ready needs no table. Written out for the two.
    """
    near = readers[0]
    scheduler, end = near.scheduler, near.endpoint
    task, step = scheduler.running, scheduler.step + 1
    if task is None or step >= scheduler.point_at or end is None or end.peer is None:
        return None
    if near.process is not task.process or near.descriptor == -1 or len(readers) > 2:
        return None
    further = other = None
    if len(readers) == 2:
        further = readers[1]
        if type(further) is not VirtualSocket or further.process is not task.process:
            return None
        other = further.endpoint
        if other is None or other.peer is None or other is end or further.descriptor == -1:
            return None
    scheduler.step = step
    is_near = end.arrived or end.has_ended or end.error is not None
    if other is None or further is None:
        if is_near:
            return [near]
    elif other.arrived or other.has_ended or other.error is not None:
        return [near, further] if is_near else [further]
    elif is_near:
        return [near]
    return _wait_to_read(scheduler, task, near, further, int(timeout * NS))


def _wait_to_read(
    scheduler: Scheduler,
    task: Task,
    near: VirtualSocket,
    further: VirtualSocket | None,
    left_ns: int,
) -> list[VirtualSocket]:
    """`_wait` for one or two connections, none of which can be read yet."""
    end, other = near.endpoint, None if further is None else further.endpoint
    assert end is not None, "it is connected"
    ends_ns = scheduler.now_ns + left_ns
    is_near: object = False
    is_further: object = False
    end.waiters.append(task)
    if other is not None:
        other.waiters.append(task)
    try:
        while left_ns > 0 and not is_near and not is_further:
            scheduler.block("a socket", left_ns)
            is_near = end.arrived or end.has_ended or end.error is not None
            if other is not None:
                is_further = other.arrived or other.has_ended or other.error is not None
            left_ns = ends_ns - scheduler.now_ns
    finally:
        end.waiters.remove(task)
        if other is not None:
            other.waiters.remove(task)
    found = [near] if is_near and near.descriptor != -1 else []
    if is_further and further is not None and further.descriptor != -1:
        found.append(further)
    return found


def can_write(sock: VirtualSocket) -> bool:
    """Whether a connection has room at once; if not, a poll needs the longer way."""
    scheduler = sock.scheduler
    task, step, endpoint = scheduler.running, scheduler.step + 1, sock.endpoint
    if (
        task is None
        or endpoint is None
        or endpoint.peer is None
        or step >= scheduler.point_at
        or sock.descriptor == -1
        or sock.process is not task.process
        or (endpoint.under_way >= WINDOW_BYTES and endpoint.error is None)
    ):
        return False
    scheduler.step = step
    return True


def select_sockets(
    readers: list[VirtualSocket], writers: list[VirtualSocket], timeout: float | None
) -> Selected | None:
    """Wait until some of the sockets are ready, as `select` with their descriptors.

    None outside of a world, for a timeout that makes no sense, and for anything but open sockets
    of the process that runs, each of them once.
    """
    scheduler = here.scheduler
    if scheduler is None or scheduler.running is None:
        return None
    descriptors = scheduler.running.process.descriptors
    wanted: Wanted = {}
    for sock in readers:
        if type(sock) is not VirtualSocket or descriptors.get(sock.descriptor) is not sock:
            return None
        wanted[sock] = READ
    for sock in writers:
        if type(sock) is not VirtualSocket or descriptors.get(sock.descriptor) is not sock:
            return None
        wanted[sock] = WRITE
    if len(wanted) != len(readers) + len(writers):
        return None
    if timeout is None:
        timeout_ns = None
    elif type(timeout) in NUMBERS and timeout >= 0:
        timeout_ns = int(timeout * NS)
    else:
        return None
    can_read: list[VirtualSocket] = []
    can_write: list[VirtualSocket] = []
    for sock, found in wait_for(scheduler, wanted, timeout_ns):
        if sock.descriptor != -1:
            (can_read if found == READ else can_write).append(sock)
    return can_read, can_write, []


class Selector(selectors.BaseSelector):
    """What stands for each of the selectors."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._sockets: Wanted = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a socket."""
        if events not in EVENTS:
            raise ValueError(f"Invalid events: {events!r}")
        descriptor = fileobj if type(fileobj) is int else _descriptor_of(fileobj)
        if descriptor in self._keys:
            raise KeyError(f"{fileobj!r} (FD {descriptor}) is already registered")
        # kazoo registers anew for each poll; the constructor of a named tuple takes longest.
        key: selectors.SelectorKey = _new_tuple(
            selectors.SelectorKey, (fileobj, descriptor, events, data)
        )
        self._sockets[_socket_of(self._scheduler, descriptor)] = events
        self._keys[descriptor] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Watch a socket no more."""
        key = self._key_of(fileobj)
        del self._keys[key.fd]
        for sock in [sock for sock in self._sockets if sock.fileno() in (key.fd, -1)]:
            if sock.fileno() == key.fd or not any(sock.fileno() == fd for fd in self._keys):
                del self._sockets[sock]
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a socket for other events."""
        self.unregister(fileobj)
        return self.register(fileobj, events, data)

    def _key_of(self, fileobj: Any) -> selectors.SelectorKey:
        for key in self._keys.values():
            if key.fileobj is fileobj:
                return key
        descriptor = _descriptor_of(fileobj)
        if descriptor in self._keys:
            return self._keys[descriptor]
        raise KeyError(f"{fileobj!r} is not registered")

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until some of the sockets are ready."""
        timeout_ns = None if timeout is None else int(timeout * NS)
        ready = wait_for(self._scheduler, self._sockets, timeout_ns)
        keys = self._keys
        if len(ready) == 1:  # as nearly always: kazoo polls one or two sockets
            sock, found = ready[0]
            return [(keys[sock.descriptor], found)] if sock.descriptor != -1 else []
        return [(keys[sock.descriptor], found) for sock, found in ready if sock.descriptor != -1]

    def close(self) -> None:
        """Forget every socket."""
        self._keys.clear()
        self._sockets.clear()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """What a socket was registered with."""
        return self._key_of(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """File object or descriptor -> what it was registered with."""
        return _Keys(self._keys)


class _Keys(dict[Any, selectors.SelectorKey]):
    """The keys by descriptor, found by file object too."""

    def __missing__(self, fileobj: Any) -> selectors.SelectorKey:
        for key in self.values():
            if key.fileobj is fileobj:
                return key
        raise KeyError(f"{fileobj!r} is not registered")

    def get(self, fileobj: Any, default: Any = None) -> Any:
        """The key of a file object or a descriptor."""
        try:
            return self[fileobj]
        except KeyError:
            return default


def _selector_class(name: str) -> type:
    real = _real[name]

    class Kind(type(real)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            scheduler = here.scheduler
            if scheduler is None or scheduler.running is None or scheduler.network is None:
                return real(*args, **kwargs)
            return Selector(scheduler)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real | Selector)

    return Kind(name, (real,), {"__doc__": f"`selectors.{name}`, virtual within a world."})


SELECTORS = {
    name: _selector_class(name) for name in _real if name != "BaseSelector" and name[0] != "_"
}
"""Name of a selector -> what stands for it."""


class Poll:
    """What stands for `select.poll()` and `select.epoll()`."""

    def __init__(self, scheduler: Scheduler, unit_ns: int) -> None:
        self._scheduler = scheduler
        self._unit_ns = unit_ns
        self._events: dict[int, int] = {}

    def register(self, fd: Any, eventmask: int = POLLIN | POLLOUT) -> None:
        """Watch a socket."""
        descriptor = _descriptor_of(fd)
        _socket_of(self._scheduler, descriptor)
        self._events[descriptor] = eventmask

    def modify(self, fd: Any, eventmask: int) -> None:
        """Watch a socket for other events."""
        descriptor = _descriptor_of(fd)
        if descriptor not in self._events:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        self._events[descriptor] = eventmask

    def unregister(self, fd: Any) -> None:
        """Watch a socket no more."""
        del self._events[_descriptor_of(fd)]

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """Wait until some of the sockets are ready."""
        no_end = timeout is None or timeout < 0
        timeout_ns = None if no_end or timeout is None else int(timeout * self._unit_ns)
        wanted = {}
        for descriptor, mask in self._events.items():
            events = (READ if mask & POLLIN else 0) | (WRITE if mask & POLLOUT else 0)
            wanted[_socket_of(self._scheduler, descriptor)] = events
        ready = wait_for(self._scheduler, wanted, timeout_ns)
        return [
            (
                sock.fileno(),
                (POLLIN if found & READ and not sock.is_unconnected else 0)
                | (POLLOUT if found & WRITE else 0)
                | (POLLHUP if sock.has_hung_up else 0),
            )
            for sock, found in ready
        ]

    def close(self) -> None:
        """Forget every socket."""
        self._events.clear()

    def fileno(self) -> int:
        """It has no descriptor."""
        return -1

    def __enter__(self) -> Poll:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def poll() -> Any:
    """An object that polls, with timeouts in milliseconds."""
    found = world_network()
    return _poll() if found is None else Poll(found[0], NS // 1000)


def epoll(sizehint: int = -1, flags: int = 0) -> Any:
    """An object that polls, with timeouts in seconds."""
    found = world_network()
    return _epoll(sizehint, flags) if found is None else Poll(found[0], NS)
