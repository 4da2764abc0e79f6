"""Each wrong address of a ZooKeeper has a sentence of its own, and no session is opened."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from watchkeeper import Consumer
from watchkeeper.cli.main import run_command
from watchkeeper.real.access import Access
from watchkeeper.real.client.address_check import CLOSED, addresses_problem
from watchkeeper.real.ports import free_ports
from watchkeeper.testing import ZooKeeper

Answer = Callable[[socket.socket], object]


@contextmanager
def listening(answer: Answer) -> Iterator[str]:
    """The address of a server that does this to each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    line, _ = server.accept()
                    with line:
                        answer(line)

        Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def says(text: bytes) -> Answer:
    def answer(line: socket.socket) -> None:
        line.recv(1_000)
        line.sendall(text)

    return answer


WRONG: dict[str, tuple[Answer, str]] = {
    "a web server": (
        says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "is something else than a ZooKeeper: it says 'HTTP/1.1 400 Bad Request'",
    ),
    "one that hangs up": (lambda line: line.recv(1_000), CLOSED),
    "one with TLS": (says(b"\x15\x03\x03\x00\x02\x02\x46"), "answers in TLS"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_zookeeper_is_named(what: str) -> None:
    answer, wanted = WRONG[what]
    with listening(answer) as address:
        problem = addresses_problem(Access(address))

    assert problem.startswith(f"no ZooKeeper answers at {address}: {address} ")
    assert wanted in problem


def test_a_port_without_a_server_and_a_name_without_a_host() -> None:
    [port] = free_ports(1)
    problem = addresses_problem(Access(f"127.0.0.1:{port},no-such-host.invalid:2181"))

    assert f"127.0.0.1:{port} refuses connections" in problem
    assert "no host has the name no-such-host.invalid" in problem


def test_one_address_of_several_is_enough() -> None:
    """And the look at it opens no session."""
    [port] = free_ports(1)
    with ZooKeeper() as zookeeper:
        host = zookeeper.hosts.partition("/")[0]
        before = zookeeper.client().client_id[0]
        assert addresses_problem(Access(f"127.0.0.1:{port},{host}")) == ""
        assert zookeeper.client().client_id[0] - before == 1


def test_a_server_without_tls_is_named() -> None:
    with ZooKeeper() as zookeeper:
        host = zookeeper.hosts.partition("/")[0]
        problem = addresses_problem(Access(host, tls=(("use_ssl", True),)))

    assert "does not agree on TLS" in problem


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "{hosts}"),
        ("offsets", "{hosts}", "export", "offsets.json", "--group", "billing"),
        ("topics", "describe", "{hosts}"),
        ("controller", "{hosts}"),
    ],
    ids=lambda words: words[0],
)
def test_commands_say_what_is_wrong(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    [port] = free_ports(1)
    hosts = f"127.0.0.1:{port}"

    assert run_command([word.format(hosts=hosts) for word in words]) == 4
    assert f"{hosts} refuses connections: nothing listens there" in capsys.readouterr().err


def test_a_wrong_chroot_is_not_an_empty_registry(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ZooKeeper() as zookeeper:
        host = zookeeper.hosts.partition("/")[0]
        zookeeper.client().ensure_path("/kafka")

        assert run_command(["audit", f"{host}/kafak"]) == 4
        said = capsys.readouterr().err
        assert f"the ZooKeeper at {host} has no znode /kafak; its root has kafka" in said
        assert run_command(["audit", f"{host}/kafka"]) == 4
        assert "there is no registry" in capsys.readouterr().err


def test_a_member_logs_why_it_has_no_session(caplog: pytest.LogCaptureFixture) -> None:
    """It goes on trying; `ready` has the reason, too."""
    [port] = free_ports(1)
    consumer = Consumer(f"127.0.0.1:{port}", group="billing", topics={"clicks": 1})
    with (
        caplog.at_level(logging.WARNING),
        consumer,
        pytest.raises(TimeoutError, match="refuses connections"),
    ):
        consumer.ready(0.5)
    assert "refuses connections: nothing listens there; is the port right?; it goes on" in (
        caplog.text
    )
