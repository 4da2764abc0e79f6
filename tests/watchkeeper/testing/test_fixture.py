"""The fixture `zookeeper` of the pytest plugin: what other people's tests get."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHARING = """
    import pytest

    def test_one(zookeeper):
        client = zookeeper.client()
        client.create("/a", b"one")
        zookeeper.drop_next_reply(operation="create")
        zookeeper.delay(30)
        zookeeper.pause()

    def test_two(zookeeper):
        client = zookeeper.client()
        assert client.exists("/a") is None
        assert len(zookeeper.sessions) == 1
        assert zookeeper.hosts.endswith(zookeeper.chroot)
        client.create("/never")
        assert [event.detail["path"] for event in zookeeper.history.of_kind("request")][-1] == (
            zookeeper.chroot + "/never"
        )
        assert {event.node for event in zookeeper.history.of_kind("connected")} == {"client/1"}

    @pytest.mark.parametrize("path", ["a/b c", "d"])
    def test_three(zookeeper, path):
        from kazoo.client import KazooClient
        from kazoo.security import make_digest_acl
        root = KazooClient(zookeeper.hosts.partition("/")[0])
        root.start()
        client = zookeeper.client()
        client.add_auth("digest", "ann:secret")
        client.create("/locked", acl=[make_digest_acl("ann", "secret", all=True)])
        client.create("/locked/below")
        left = [name for name in root.get_children("/") if name.startswith("test")]
        root.stop()
        root.close()
        assert len(left) == 1, "earlier tests have left nothing"
        lost = zookeeper.lose_next_request("/locked", operation="get")
        with pytest.raises(Exception, match=""):
            client.get("/locked")
        assert lost.effects == {"requests lost": 1}
"""

CHEAP = """
    import sys

    def test_it():
        loaded = [name for name in sys.modules if name.startswith("watchkeeper.")]
        assert not [name for name in loaded if ".real" in name or ".model" in name], loaded
        assert "kazoo" not in sys.modules
"""

OWN = """
    import pytest

    @pytest.fixture
    def zookeeper():
        return "the project's own"

    def test_it(zookeeper):
        assert zookeeper == "the project's own"
"""


def test_tests_share_a_server_and_leave_nothing_behind(pytester: pytest.Pytester) -> None:
    """Neither znodes, nor sessions, nor faults, nor a server that stands still."""
    pytester.makepyfile(SHARING)
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=4)


def test_each_worker_has_a_server_of_its_own(pytester: pytest.Pytester) -> None:
    """Tests that run at the same time do not meet."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_it(zookeeper, number):
            client = zookeeper.client()
            client.create("/a", ephemeral=True)
            assert len(zookeeper.sessions) == 1
            zookeeper.expire(client)
            assert zookeeper.sessions == {}
        """
    )
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=6)


def test_what_uses_no_fixture_imports_nothing(pytester: pytest.Pytester) -> None:
    """The plugin is loaded in every suite of an environment, and has to cost nothing there."""
    pytester.makepyfile(CHEAP)
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=1)


NO_KAZOO = """
import socket, sys
sys.modules["kazoo"] = None
from watchkeeper.testing import ZooKeeper

for own_process in (False, True):
    with ZooKeeper(own_process=own_process) as zookeeper:
        host, port = zookeeper.hosts.split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"ruok")
            print(connection.makefile().read())
        try:
            zookeeper.client()
        except ImportError as error:
            print(error)
"""


def test_only_its_own_clients_need_kazoo() -> None:
    """Any other client works with the plain install, and a sentence names the extra."""
    done = subprocess.run(
        [sys.executable, "-c", NO_KAZOO], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    words = done.stdout.splitlines()
    assert words[::2] == ["imok", "imok"]
    assert all("install the extra 'live'" in line for line in words[1::2])


def test_a_fixture_of_the_project_goes_first(pytester: pytest.Pytester) -> None:
    """A project may have one of this name already."""
    pytester.makepyfile(OWN)
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=1)
