"""How far a table has come is compared with a group on a real ZooKeeper, and set there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.support.live_zookeeper import OFTEN
from tests.support.log.kafka_logs import in_turn, written
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.loads import load
from tests.support.registries import GROUP, Shape, healthy
from watchkeeper.cli.main import run_command
from watchkeeper.model.registry import paths
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

SHAPES = {
    "0.7": Shape("0.7", brokers=2, topics={"clicks": 1}),
    "0.8": Shape("0.8", brokers=2, topics={"clicks": 2}),
}
FOLDERS = {"0.7": ("0/clicks-0", "1/clicks-0"), "0.8": ("0/clicks-0", "0/clicks-1")}
NAMES = {"0.7": ("0-0", "1-0"), "0.8": ("0", "1")}
Output = pytest.CaptureFixture[str]


class Group:
    """A registry with a group of one session, written below a chroot."""

    def __init__(self, hosts: str, chroot: str, shape: Shape) -> None:
        self.hosts = f"{hosts}{chroot}"
        self.shape = shape
        self.keeper, self.member = (KazooClient(hosts, connection_retry=OFTEN) for _ in "ab")
        for client in (self.keeper, self.member):
            client.start(timeout=PATIENCE_S)
            client.ensure_path(chroot)
            client.chroot = chroot
        for path, (data, session) in healthy(shape).items():
            client = self.member if session else self.keeper
            client.create(path, data, makepath=True, ephemeral=bool(session))

    def end(self, *clients: KazooClient) -> None:
        for client in clients:
            client.stop()
            client.close()

    def offsets(self) -> list[int]:
        """What is committed, partition by partition."""
        places = [paths.offset(GROUP, partition) for partition in self.shape.partitions("clicks")]
        return [int(self.keeper.get(path)[0]) for path in places]


@pytest.fixture(params=["0.7", "0.8"])
def group(zookeeper: Ensemble, request: pytest.FixtureRequest) -> Iterator[Group]:
    made = Group(zookeeper.hosts, f"/load-{request.param}", SHAPES[request.param])
    yield made
    made.end(made.keeper)


def test_a_table_is_compared_with_a_group_and_sets_it(
    group: Group, tmp_path: Path, capsys: Output
) -> None:
    """Set while no member is alive, and not before; then both stand at the same place."""
    form = group.shape.layout
    logs = {FOLDERS[form][0]: in_turn(form, 4), FOLDERS[form][1]: in_turn(form, 6)}
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"
    ends = [log.end for log in logs.values()]
    where = ("--group", GROUP, "--zookeeper", group.hosts)

    def printed(*command: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = run_command([*command, "--json"])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, found

    code, found = printed("load", str(home), str(out), *where)
    assert code == 1
    assert found["messages"] == 30
    assert found["offsets"] == {"clicks": dict(zip(NAMES[form], ends, strict=True))}
    assert [row["committed"] for row in found["compared"]] == [42, 42]
    assert [row["ahead"] for row in found["compared"]] == [end - 42 for end in ends]

    code, found = printed("load", "--offsets", str(out), *where, "--set")
    assert code == 1
    assert f"group {GROUP} is alive" in found["error"]["message"]
    assert group.offsets() == [42, 42]

    group.end(group.member)
    code, found = printed("load", "--offsets", str(out), *where, "--set")
    assert code == 0
    assert [row["to"] for row in found["changed"].values()] == ends
    assert group.offsets() == ends
    assert load(home, out, *where) == 0
    assert "ahead" in capsys.readouterr().out

    (tmp_path / "offsets.json").write_text(json.dumps(found))
    reset = ("offsets", group.hosts, "reset", str(tmp_path / "offsets.json"), "--group", GROUP)
    assert printed(*reset) == (0, {"group": GROUP, "file": reset[3], "changed": {}})


def test_a_group_that_is_not_there(zookeeper: Ensemble, tmp_path: Path, capsys: Output) -> None:
    """The table is loaded all the same."""
    home = written(tmp_path / "logs", {"clicks-0": in_turn("0.7", 1)})
    where = ("--group", "missing", "--zookeeper", f"{zookeeper.hosts}/none")
    assert load(home, tmp_path / "out", *where) == 4
    assert "has no znode /none" in capsys.readouterr().err
    assert run_command(["load", "--offsets", str(tmp_path / "out")]) == 0
