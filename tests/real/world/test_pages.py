"""The commands on the page about live runs, against a live ZooKeeper."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests import HOME
from watchkeeper.cli.main import run_command
from watchkeeper.real.zookeeper.ensemble import Ensemble

PAGE = HOME / "docs/how-to/run-live.md"
BLOCK = re.compile(r"```text\n(watchkeeper .*\n)+```")
COMMANDS = [
    line
    for block in BLOCK.finditer(PAGE.read_text())
    for line in block[0].splitlines()
    if line.startswith("watchkeeper ")
]
EXAMPLE = "zk.example"


@pytest.fixture(scope="module", name="zookeeper")
def fixture_zookeeper(own_zookeeper: Ensemble) -> Ensemble:
    """The commands of the page run at the root."""
    return own_zookeeper


def test_the_page_shows_every_kind_of_run() -> None:
    """On each ZooKeeper, with messages, replicas, a mirror, and beside a simulation."""
    assert [line.split()[1] for line in COMMANDS] == [*["run"] * 7, "compare"]
    assert [line for line in COMMANDS if line.endswith("--zookeeper java")]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_shown_command_succeeds(
    command: str, tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with 0; other tests check its output."""
    here = command.replace(f"{EXAMPLE}:2181", zookeeper.addresses[0])
    words = shlex.split(here.replace(EXAMPLE, "127.0.0.1"))[1:]
    options = ["--no-pictures"] if words[0] == "run" else []
    operator = KazooClient(zookeeper.hosts)
    operator.start()
    operator.ensure_path("/staging")
    operator.stop()
    operator.close()

    code = run_command([*words, *options, "--out", str(tmp_path)])

    output = capsys.readouterr()
    assert code == 0, output.err
    assert output.out.startswith(f"{words[1]}, hardened")
