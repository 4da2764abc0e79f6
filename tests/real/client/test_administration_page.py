"""The page on administration: its commands are run on a real ZooKeeper, in their order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests import HOME
from tests.support.live_registry import Cluster
from tests.support.pages.markdown import blocks
from tests.support.pages.output import difference, normal
from tests.support.pages.session import ZOOKEEPER, commands_of
from tests.support.registries import Shape, controlled, state_path
from watchkeeper.cli.main import run_command
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState, Reassignment, TopicAssignment
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

PAGE = HOME / "docs" / "how-to" / "administer-a-cluster.md"
DIFFERS = (
    (re.compile(r"since .{19} UTC"), "since 2026-11-21 21:10:53 UTC"),
    (re.compile(r"session 0x[0-9a-f]+"), "session 0x100006f2f610005"),
)
"""When the controller became it, and its session."""
VERIFY = "watchkeeper reassign localhost:2181 --file moves.json --verify"
NOT_PREFERRED = "watchkeeper topics describe localhost:2181 --not-preferred"


@pytest.fixture
def cluster(zookeeper: Ensemble, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers and a controller."""
    with Cluster.of_test(zookeeper.hosts, request) as made:
        made.write(controlled(Shape(brokers=3, topics={}, streams=())))
        made.write(
            dict.fromkeys((paths.TOPICS, paths.TOPIC_CONFIGS, paths.CONFIG_CHANGES), (b"", 0))
        )
        yield made


class Reader:
    """A reader of the page, and the controller of the reader's cluster."""

    def __init__(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        self.cluster = cluster
        self.capsys = capsys
        self.verified = 0

    @property
    def client(self) -> KazooClient:
        return self.cluster.client(0)

    def run(self, command: str) -> list[str]:
        """Run a command of the page; what it prints."""
        self._before(command)
        words = shlex.split(command.replace(ZOOKEEPER, self.cluster.hosts))
        run_command(words[1:])
        text = "".join(self.capsys.readouterr()).replace(self.cluster.hosts, ZOOKEEPER)
        for pattern, instead in DIFFERS:
            text = pattern.sub(instead, text)
        return normal(text)

    def _before(self, command: str) -> None:
        """Do what the controller has done before this command."""
        self._elect()
        if command == VERIFY:
            self.verified += 1
            if self.verified == 2:
                self._move()
        if command == NOT_PREFERRED:
            state = PartitionState(0, (0, 1), leader_epoch=1, controller_epoch=3)
            self.cluster.write({state_path("clicks", 1): (state.encode(), 0)})

    def _elect(self) -> None:
        """Give each new partition a state."""
        for topic in self.client.get_children(paths.TOPICS):
            data, _ = self.client.get(paths.topic(topic))
            for index, replicas in TopicAssignment.decode("", data).replicas:
                if self.client.exists(state_path(topic, index)) is None:
                    state = PartitionState(replicas[0], replicas, controller_epoch=3)
                    self.cluster.write({state_path(topic, index): (state.encode(), 0)})

    def _move(self) -> None:
        """Carry the pending reassignment out."""
        data, _ = self.client.get(paths.REASSIGN_PARTITIONS)
        moved = {index: replicas for _, index, replicas in Reassignment.decode("", data).moves}
        before, _ = self.client.get(paths.topic("clicks"))
        after = dict(TopicAssignment.decode("", before).replicas) | moved
        self.client.set(paths.topic("clicks"), TopicAssignment(tuple(after.items())).encode())
        for index, replicas in moved.items():
            state = PartitionState(replicas[0], replicas, leader_epoch=2, controller_epoch=3)
            self.cluster.write({state_path("clicks", index): (state.encode(), 0)})
        self.client.delete(paths.REASSIGN_PARTITIONS)


def test_the_page_shows_what_happens(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Every command gives the output shown below it, and the files that later ones read."""
    monkeypatch.chdir(tmp_path)
    reader = Reader(cluster, capsys)
    wrong: list[str] = []
    text = PAGE.read_text()
    lines = text.splitlines()
    added = 0
    for step in [one for block in blocks(text) for one in commands_of(block)]:
        real = reader.run(step.command)
        if list(step.shown) != real:
            wrong.append(f"$ {step.command}\n{difference(step.shown, real)}")
        at = step.line - 1 + added
        lines[at : at + len(step.shown)] = real
        added += len(real) - len(step.shown)
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text("\n".join(lines) + "\n")
        pytest.skip("written anew; run it again")
    assert not wrong, "\n\n".join(wrong)
