"""The links between brokers: each direction of each pair is cut by itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from watchkeeper.model.wire.frames import frame
from watchkeeper.real.proxy.links import Links

A, B, C = "broker/0", "broker/1", "broker/2"


@pytest.fixture
def listeners() -> Iterator[dict[str, socket.socket]]:
    """A port for each of three brokers."""
    opened = {node: socket.create_server(("127.0.0.1", 0)) for node in (A, B, C)}
    yield opened
    for listener in opened.values():
        listener.close()


@pytest.fixture
def links(listeners: dict[str, socket.socket]) -> Iterator[Links]:
    """The links between them."""
    addresses = {
        node: "{}:{}".format(*listener.getsockname()) for node, listener in listeners.items()
    }
    made = Links(addresses)
    yield made
    made.stop()


def connected(
    links: Links, listeners: dict[str, socket.socket], client: str, server: str
) -> tuple[socket.socket, socket.socket]:
    """Connect a broker to another; returns both ends."""
    own = "{}:{}".format(*listeners[server].getsockname())
    host, _, port = links.routes[client][own].rpartition(":")
    near = socket.create_connection((host, int(port)), 5)
    far, _ = listeners[server].accept()
    for end in (near, far):
        end.settimeout(0.3)
    return near, far


def passes(one: socket.socket, other: socket.socket) -> bool:
    """Whether a frame comes through."""
    one.sendall(frame(b"hello to you"))
    try:
        return other.recv(100) == frame(b"hello to you")
    except TimeoutError:
        return False


def test_a_cut_holds_up_one_pair(links: Links, listeners: dict[str, socket.socket]) -> None:
    """In both directions, on the connections of either; then what waited comes through."""
    near, far = connected(links, listeners, A, B)
    back, there = connected(links, listeners, B, A)
    other, end = connected(links, listeners, A, C)
    counted: list[str] = []

    cut = links.cut(A, [B], lambda what, number: counted.append(what))
    ends = ((near, far), (far, near), (back, there), (there, back))
    assert [passes(*pair) for pair in ends] == [False] * 4
    assert passes(other, end)
    assert counted.count("messages held up") == 4

    cut.end()
    assert far.recv(100) == frame(b"hello to you")
    assert passes(near, far)


@pytest.mark.parametrize("direction", ["to", "from"])
def test_a_cut_of_one_direction(
    links: Links, listeners: dict[str, socket.socket], direction: str
) -> None:
    """Seen from the broker that is named."""
    near, far = connected(links, listeners, A, B)
    back, there = connected(links, listeners, B, A)
    links.cut(A, [B], lambda what, number: None, directions=[direction])  # type: ignore[list-item]

    from_a = [passes(near, far), passes(there, back)]
    to_a = [passes(far, near), passes(back, there)]
    assert (from_a, to_a) == (
        ([False, False], [True, True]) if direction == "to" else ([True, True], [False, False])
    )
