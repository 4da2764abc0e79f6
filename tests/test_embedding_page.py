"""What is shown of live members is what happens, on a real ZooKeeper."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from real.ensemble import Ensemble
from tests.readme_pages import HOME, blocks
from tests.readme_session import ZOOKEEPER, commands_of
from watchkeeper import Broker

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

NUMBERS = count(1)
PAGE = "docs/how-to/embed-a-member.md"
LONGEST_S = 60


@pytest.fixture
def hosts(zookeeper: Ensemble) -> str:
    return f"{zookeeper.hosts}/pages/{next(NUMBERS)}"


def written(name: str, folder: Path) -> dict[str, list[str]]:
    """Write the programs of a page; the commands that need a ZooKeeper, with their output."""
    shown = {}
    for block in blocks((HOME / name).read_text()):
        if block.file:
            (folder / block.file).write_text(block.text)
        for step in commands_of(block):
            if ZOOKEEPER in step.command:
                shown[step.command] = list(step.shown)
    return shown


def begun(command: str, hosts: str, folder: Path) -> subprocess.Popen[str]:
    tool, *arguments = command.replace(ZOOKEEPER, hosts).split()
    assert tool == "python"
    return subprocess.Popen(
        [sys.executable, "-u", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> list[str]:
    try:
        said, _ = process.communicate(timeout=LONGEST_S)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return said.splitlines()


def test_every_program_is_run_below() -> None:
    """A program that is added to the page has to be run here."""
    commands = [
        step.command for block in blocks((HOME / PAGE).read_text()) for step in commands_of(block)
    ]
    assert commands == [
        f"python {name}.py {ZOOKEEPER}" for name in ("billing", "billing_async", "hello")
    ]


def test_the_readme(hosts: str, tmp_path: Path) -> None:
    ((command, shown),) = written("README.md", tmp_path).items()
    assert ended(begun(command, hosts, tmp_path)) == shown


def test_two_share_and_one_is_interrupted(hosts: str, tmp_path: Path) -> None:
    written(PAGE, tmp_path)
    command = f"python billing.py {ZOOKEEPER}"
    with Broker(hosts, id=7, topics={"clicks": 4}):
        first = begun(command, hosts, tmp_path)
        second = begun(command, hosts, tmp_path)
        assert second.stdout is not None
        heard = [next(second.stdout)]
        until_said(second, heard, "owns=2")
        first.send_signal(signal.SIGINT)
        assert ended(first)[-1] == "committed 2 times"
        until_said(second, heard, "owns=4")
        second.send_signal(signal.SIGINT)
        assert "ends why=left" in ended(second)[-2]


def until_said(process: subprocess.Popen[str], heard: list[str], words: str) -> None:
    assert process.stdout is not None
    while words not in heard[-1]:
        line = next(process.stdout, None)
        assert line is not None, "".join(heard)
        heard.append(line)


def test_the_event_loop(hosts: str, tmp_path: Path) -> None:
    written(PAGE, tmp_path)
    with Broker(hosts, id=7, topics={"clicks": 4}) as broker:
        broker.ready()
        process = begun(f"python billing_async.py {ZOOKEEPER}", hosts, tmp_path)
        assert ended(process) == ["reading 4 partitions"]


def test_a_program_of_ones_own(hosts: str, tmp_path: Path) -> None:
    written(PAGE, tmp_path)
    said = ended(begun(f"python hello.py {ZOOKEEPER}", hosts, tmp_path))
    assert said == ["a program has seen 0 znodes"]
