"""Sockets of virtual processes: streams, refusals, time-outs, faults of links, and polls."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
import selectors
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.virtual_time import Machine, in_virtual_time
from watchkeeper.virtual.schedule.random_policy import RandomPolicy

PORT = 7000


def serve(machine: Machine, answers: int = 1) -> None:
    """Answer each message by the same one in capitals."""
    with socket.create_server(("", PORT)) as listening:
        for _ in range(answers):
            client, _ = listening.accept()
            with client:
                while data := client.recv(4096):
                    client.sendall(data.upper())


def call(machine: Machine, message: bytes = b"hello", timeout_s: float = 5.0) -> Any:
    """Send a message to the server and return the whole answer."""
    time.sleep(0.01)
    with socket.create_connection(("server", PORT), timeout_s) as sock:
        sock.sendall(message)
        sock.shutdown(socket.SHUT_WR)
        found = b""
        while data := sock.recv(777):
            found += data
        return found


@pytest.mark.parametrize("size", [5, 300_000, 2_000_000])
def test_a_stream_carries_everything_in_order(size: int) -> None:
    """Messages of every size arrive whole, beyond the window too."""
    message = bytes(97 + at % 26 for at in range(size))
    for seed in range(3):
        machine = Machine(RandomPolicy(seed), seed=seed)
        machine.process("server", serve, machine)
        machine.process("client", call, machine, message)
        assert machine.run()["client"] == message.upper()


def test_a_port_without_a_listener_refuses() -> None:
    """A connection that nothing accepts is refused, and takes a round trip."""

    def attempt() -> Any:
        began = time.monotonic()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("localhost", 1), 5)
        return time.monotonic() - began > 0

    assert in_virtual_time(attempt)


def test_a_name_that_is_not_of_the_world() -> None:
    """A host name of elsewhere is not known."""

    def attempt() -> None:
        with pytest.raises(socket.gaierror):
            socket.create_connection(("example.org", 80), 5)

    in_virtual_time(attempt)


def test_a_cut_holds_what_is_sent_until_it_heals() -> None:
    """Bytes and connections wait for a cut link; a time-out comes first if it is shorter."""
    machine = Machine()
    machine.process("server", serve, machine)
    machine.process("client", call, machine)
    server, client = (each.address for each in machine.scheduler.processes)
    machine.network.cut(client, server)
    machine.scheduler.call_at(3 * 10**9, lambda: machine.network.heal(client, server))

    assert machine.run()["client"] == b"HELLO"
    assert machine.scheduler.now_ns > 3 * 10**9

    impatient = Machine()
    impatient.process("server", serve, impatient)
    impatient.process("client", call, impatient, b"hello", 1.0)
    impatient.network.cut(client, server)
    with pytest.raises(TimeoutError):
        impatient.run(until_s=10)


def test_a_one_way_cut_lets_the_other_way_pass() -> None:
    """A request arrives, and its answer does not until the cut heals."""
    machine, arrived = Machine(), []

    def server() -> None:
        with socket.create_server(("", PORT)) as listening:
            client, _ = listening.accept()
            arrived.append((client.recv(100), round(time.monotonic())))
            client.sendall(b"answer")
            time.sleep(10)

    def client() -> Any:
        time.sleep(0.1)
        sock = socket.create_connection(("server", PORT))
        machine.network.cut(*addresses, one_way=True)
        sock.sendall(b"request")
        sock.settimeout(2)
        with pytest.raises(TimeoutError):
            sock.recv(100)
        machine.network.heal(*addresses)
        return sock.recv(100)

    machine.process("server", server)
    machine.process("client", client)
    addresses = [each.address for each in machine.scheduler.processes]

    assert machine.run()["client"] == b"answer"
    assert arrived == [(b"request", 1000)]


def test_a_crash_closes_connections_and_a_pause_does_not() -> None:
    """The end of a process is seen at once; a process that stands still goes on receiving."""
    machine, seen = Machine(), []

    def server() -> None:
        with socket.create_server(("", PORT)) as listening:
            sock, _ = listening.accept()
            while data := sock.recv(100):
                seen.append((data, round(time.monotonic() - 1000)))
            seen.append((b"", round(time.monotonic() - 1000)))

    def client() -> None:
        time.sleep(0.1)
        sock = socket.create_connection(("server", PORT))
        for _ in range(10):
            sock.sendall(b"x")
            time.sleep(1)

    machine.process("server", server)
    machine.process("client", client)
    paused, crashing = machine.scheduler.processes
    machine.scheduler.call_at(int(0.5e9), lambda: machine.scheduler.pause(paused))
    machine.scheduler.call_at(int(3.5e9), lambda: machine.scheduler.resume(paused))
    machine.scheduler.call_at(int(5.5e9), lambda: machine.scheduler.crash(crashing))
    machine.run(until_s=20)

    assert b"".join(data for data, _ in seen) == b"xxxxxx"
    assert [at for _, at in seen][:2] == [0, 4]
    assert seen[-1] == (b"", 6)


def test_errors_of_sockets() -> None:
    """A closed, a busy and an unconnected socket raise what real ones do."""

    def main() -> list[int | None]:
        found: list[int | None] = []

        def number(work: Any) -> None:
            try:
                work()
            except OSError as error:
                found.append(error.errno)

        sock = socket.socket()
        number(lambda: sock.recv(1))
        sock.setblocking(False)
        listening = socket.create_server(("", PORT))
        number(lambda: socket.create_server(("", PORT)))
        listening.settimeout(0)
        number(listening.accept)
        listening.close()
        number(listening.accept)
        left, right = socket.socketpair()
        right.close()
        assert left.recv(1) == b""
        number(lambda: [left.send(b"x") or time.sleep(0.01) for _ in range(3)])
        return found

    real = main()
    assert in_virtual_time(main) == real
    assert errno.EADDRINUSE in real


def test_a_socket_without_connection_has_hung_up() -> None:
    """Polls answer for a new socket as Linux does, and for one that listens they wait."""

    def look() -> tuple[object, ...]:
        with socket.socket() as new:
            poll = select.poll()
            poll.register(new, select.POLLIN | select.POLLOUT)
            found = select.select([new], [new], [], 0)
            events = [event for _, event in poll.poll(0)]
            new.bind(("127.0.0.1", 0))
            new.listen()
            waits = select.select([new], [new], [], 0)
            client = socket.create_connection(new.getsockname())
            time.sleep(0.1)
            accepts = [event for _, event in poll.poll(0)]
            client.close()
            return len(found[0]), len(found[1]), events, waits, accepts

    new_events = [select.POLLOUT | select.POLLHUP]
    expected = (1, 1, new_events, ([], [], []), [select.POLLIN])
    assert (look(), in_virtual_time(look)) == (expected, expected)


def test_polls_find_what_is_ready() -> None:
    """`select`, `poll`, `epoll` and each selector find a readable socket, and time out."""

    def main() -> None:
        left, right = socket.socketpair()
        threading.Timer(1, left.send, [b"x"]).start()
        assert select.select([right], [], [], 0.5) == ([], [], [])
        assert select.select([right], [left], [], 5) == ([], [left], [])
        assert select.select([right], [], [], 5)[0] == [right]
        for make, timeout in ((select.poll, 100), (select.epoll, 0.1)):
            poll = make()
            poll.register(right, select.POLLIN)
            assert poll.poll(timeout) == [(right.fileno(), select.POLLIN)]
            poll.unregister(right)
            assert poll.poll(0) == []
        for kind in (selectors.DefaultSelector, selectors.SelectSelector, selectors.PollSelector):
            with kind() as selector:
                selector.register(right, selectors.EVENT_READ, "data")
                (key, events), *more = selector.select(1)
                assert (key.data, events, more) == ("data", selectors.EVENT_READ, [])
                assert selector.get_key(right).fd == right.fileno()
                selector.modify(right, selectors.EVENT_WRITE)
                assert selector.select(1)[0][1] == selectors.EVENT_WRITE
                selector.unregister(right)
                with pytest.raises(KeyError):
                    selector.unregister(right)

    main()
    in_virtual_time(main)


def test_streams_of_asyncio() -> None:
    """A server and a client of asyncio, a process each."""
    machine = Machine(RandomPolicy(1))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        writer.write(line.upper())
        await writer.drain()
        writer.close()

    async def serving() -> None:
        server = await asyncio.start_server(answer, "", PORT)
        async with server:
            await asyncio.sleep(5)

    async def asking() -> bytes:
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("server", PORT)
        writer.write(b"hello\n")
        line = await reader.readline()
        writer.close()
        return line

    machine.process("server", lambda: asyncio.run(serving()))
    machine.process("client", lambda: asyncio.run(asking()))

    assert machine.run()["client"] == b"HELLO\n"


def test_files_of_sockets() -> None:
    """`makefile` reads lines and keeps the socket open until it is closed."""

    def main() -> list[str]:
        left, right = socket.socketpair()
        left.sendall(b"one\ntwo\n")
        left.close()
        with right.makefile() as file:
            right.close()
            return file.readlines()

    assert in_virtual_time(main) == main() == ["one\n", "two\n"]


# --- files -----------------------------------------------------------------------------


def test_a_part_of_a_file_is_sent(tmp_path: Path) -> None:
    """`sendfile` reads what the file has there, and no more."""
    file = tmp_path / "file"
    file.write_bytes(b"0123456789" * 1000)
    machine = Machine()

    def send(machine: Machine) -> list[int]:
        time.sleep(0.01)
        with socket.create_connection(("receiver", PORT)) as sock, file.open("rb") as source:
            sizes = [os.sendfile(sock.fileno(), source.fileno(), 5, 5000)]
            sizes.append(os.sendfile(sock.fileno(), source.fileno(), None, 3))
            return [*sizes, os.sendfile(sock.fileno(), source.fileno(), 9_998, 100)]

    def receive(machine: Machine) -> bytes:
        with socket.create_server(("", PORT)) as listening:
            client, _ = listening.accept()
            with client, client.makefile("rb") as stream:
                return stream.read()

    machine.process("receiver", receive, machine)
    machine.process("sender", send, machine)
    found = machine.run()
    assert found["sender"] == [5000, 3, 2]
    assert found["receiver"] == (b"0123456789" * 1000)[5:5005] + b"012" + b"89"


def test_a_lock_of_a_file_ends_with_its_process(tmp_path: Path) -> None:
    """Another process gets it after a crash, which closes the files that were open."""
    file = tmp_path / "lock"
    file.touch()
    machine = Machine()
    machine.scheduler.allowed = frozenset({"files"})

    def lock() -> None:
        descriptor = os.open(file, os.O_RDONLY)
        kept.append(descriptor)
        kept.append(file.open("rb", buffering=0))
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(100)

    def try_twice() -> list[bool]:
        time.sleep(1)
        found = []
        for _ in range(2):
            with file.open("rb") as source:
                try:
                    fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found.append(True)
                except BlockingIOError:
                    found.append(False)
            machine.scheduler.crash(holder)
        return found

    kept: list[Any] = []
    machine.process("holder", lock)
    (holder,) = machine.scheduler.processes
    machine.process("other", try_twice)
    assert machine.run() == {"other": [False, True]}
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(kept[0])
    assert kept[1].closed
