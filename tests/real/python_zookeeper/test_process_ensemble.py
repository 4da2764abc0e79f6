"""The ensemble in a process of its own: it starts, is controlled, and never outlives this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.support.live_zookeeper import is_there, until
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.python_zookeeper.process_ensemble import ProcessEnsemble

SETTINGS = EnsembleSettings(tick_ms=100, max_session_ms=30_000, connections_per_address=0)


@pytest.fixture
def three() -> Iterator[ProcessEnsemble]:
    """Three servers that run."""
    with ProcessEnsemble(3, settings=SETTINGS) as zookeeper:
        yield zookeeper


def test_its_servers_have_names_addresses_and_roles(three: ProcessEnsemble) -> None:
    """One leads, and the others follow."""
    assert [server.name for server in three.servers] == [f"zookeeper/{at}" for at in (1, 2, 3)]
    assert three.hosts == ",".join(server.address for server in three.servers)
    assert sorted(str(server.role) for server in three.servers) == [
        *("follower", "follower", "leader")
    ]
    assert three.wait_for_leader().role == "leader"
    assert three.servers[0].four_letter_word("ruok") == "imok"


def test_the_methods_of_a_server_return_whether_they_struck(three: ProcessEnsemble) -> None:
    """As those of Apache's servers do."""
    server = three.server("zookeeper/1")

    assert (server.pause(), server.state, server.pause()) == (True, "paused", False)
    assert server.role is None
    assert (server.resume(), server.state, server.resume()) == (True, "running", False)
    assert (server.kill(), server.state, server.kill()) == (True, "down", False)
    assert (server.pause(), server.resume()) == (False, False)
    server.start()
    assert server.role == "follower"
    server.restart()
    assert server.role == "follower"


def test_a_cut_and_a_lag_count_what_they_struck(three: ProcessEnsemble) -> None:
    """At once, and at their end what has come since."""
    counted: list[tuple[str, int]] = []

    def count(effect: str, number: int) -> None:
        counted.append((effect, number))

    heal = three.cut("zookeeper/1", count)
    heal()
    catch_up = three.lag("zookeeper/1", 0.2, count)
    client = KazooClient(three.hosts)
    client.start()
    client.create("/a")
    catch_up()
    client.stop()
    client.close()

    assert sum(number for effect, number in counted if effect == "links between servers cut") == 2
    assert sum(number for effect, number in counted if effect == "commits delayed") >= 1


def test_a_leader_that_shall_lag_counts_nothing(three: ProcessEnsemble) -> None:
    """It has applied everything."""
    counted: list[str] = []
    three.lag(three.wait_for_leader().name, 1.0, lambda effect, _: counted.append(effect))()
    assert counted == []


def test_an_ensemble_starts_again_after_its_end() -> None:
    """At the same addresses; before and between, its servers are down."""
    zookeeper = ProcessEnsemble(settings=SETTINGS)
    assert (zookeeper.leader, zookeeper.servers[0].state) == (None, "down")
    hosts = zookeeper.hosts
    for _ in range(2):
        with zookeeper:
            assert zookeeper.leader is not None
            assert zookeeper.hosts == hosts
        assert zookeeper.servers[0].state == "down"
        assert not zookeeper.servers[0].kill()


def test_a_port_in_use_is_a_sentence_and_leaves_no_process() -> None:
    """It names the address."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        zookeeper = ProcessEnsemble(settings=SETTINGS, ports=(port,))

        with pytest.raises(EnvironmentProblem, match=f"127.0.0.1:{port}, but Address already"):
            zookeeper.start()
        assert zookeeper.pid is None


@pytest.mark.parametrize(("servers", "ports"), [(2, ()), (0, ()), (3, (1, 2))])
def test_numbers_that_make_no_ensemble_are_refused(servers: int, ports: tuple[int, ...]) -> None:
    """An odd number of servers, and a port for each."""
    with pytest.raises(ValueError, match=r"an odd number|servers need"):
        ProcessEnsemble(servers, ports=ports)


def test_a_process_that_has_ended_is_a_sentence() -> None:
    """It says so in place of an answer."""
    with ProcessEnsemble(settings=SETTINGS) as zookeeper:
        assert zookeeper.pid is not None
        os.kill(zookeeper.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentProblem, match=r"the process of the ZooKeeper .* ended"):
            zookeeper.do("sessions", {})


PARENT = """
import sys, time
from watchkeeper.real.python_zookeeper.process_ensemble import ProcessEnsemble
zookeeper = ProcessEnsemble(inside={inside!r})
zookeeper.start()
print(zookeeper.pid, flush=True)
{fork}
time.sleep(600)
"""
FORK = "import os\nif not os.fork(): time.sleep(600)"
"""A child of the parent that holds the pipe to the servers open."""


@pytest.mark.parametrize("fork", ["", FORK])
def test_it_ends_with_its_parent_even_if_that_is_killed(tmp_path: Path, fork: str) -> None:
    """And the folder of the parent's run is removed."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "left").write_text("by the parent")
    program = PARENT.format(inside=str(inside), fork=fork)
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        assert is_there(child)

        parent.kill()

        until(lambda: not is_there(child))
        until(lambda: not inside.exists())
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)  # its fork too
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
