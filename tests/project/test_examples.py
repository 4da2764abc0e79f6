"""Each file of `examples/` runs, and its output is what a reader expects."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
import yaml

from tests import HOME, SOURCE
from tests.support.patience import PATIENCE_S
from watchkeeper.real.zookeeper.ensemble import Ensemble

EXAMPLES = HOME / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".yaml"))
TOUR = (EXAMPLES / "README.md").read_text()
MOST_LINES = 80
CHROOTS = count(1)


def run(folder: Path, *words: str | Path) -> str:
    """Run an example in a folder; return its output."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "MPLCONFIGDIR": str(folder),
            "CI": "true",  # Hypothesis then draws the same examples each time
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def hosts(zookeeper: Ensemble) -> str:
    """Return the address of a ZooKeeper, with a chroot of its own."""
    return f"{zookeeper.hosts}/examples/{next(CHROOTS)}"


def copy_of_the_protocol(folder: Path) -> Path:
    """Copy the protocol, its search and its tests to a folder."""
    for name in ("standby.py", "check_standby.py", "test_standby.py"):
        shutil.copy(EXAMPLES / name, folder)
    return folder


# --- the folder ------------------------------------------------------------------------


def test_the_tour_names_every_file() -> None:
    """A link each, and no link to a file that is not there."""
    links = re.findall(r"\[[\w.]+\]\(([\w.]+)\)", TOUR)

    assert all((EXAMPLES / link).exists() for link in links)
    assert sorted(link for link in links if (EXAMPLES / link).is_file()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_opens_with_a_sentence(name: str) -> None:
    """The first line is a sentence, which may name the command."""
    text = (EXAMPLES / name).read_text()
    first = text.splitlines()[0].removeprefix("# ")
    if name.endswith(".py"):
        docstring = ast.get_docstring(ast.parse(text))
        assert docstring is not None
        first = docstring.splitlines()[0]

    assert re.fullmatch(r"[A-Z].*(\.|: python \w+\.py.*)", first)
    assert len(text.splitlines()) <= MOST_LINES


# --- without a ZooKeeper ---------------------------------------------------------------


@pytest.mark.parametrize("variant", ["hardened", "documented"])
def test_the_scenario_gives_the_verdict_that_it_expects(variant: str, tmp_path: Path) -> None:
    """The command of the tour, and the variant that violates a property."""
    scenario = EXAMPLES / "deployment.yaml"
    words = ("-m", "watchkeeper", "run", scenario, "--no-pictures", "--variant", variant)
    verdict = "holds" if variant == "hardened" else "violated"

    assert f"deployment, {variant}, simulated, seed 0: {verdict}, as expected" in run(
        tmp_path, *words
    )
    assert variant in yaml.safe_load(scenario.read_text())["expect"]


def test_the_pictures_are_written(tmp_path: Path) -> None:
    """One as PNG, one as a page; every restarted consumer is in the list of rebalances."""
    pytest.importorskip("matplotlib")
    output = run(tmp_path, EXAMPLES / "rebalance_picture.py", "pictures")

    for name in ("ownership.png", "ownership.html"):
        assert str(Path("pictures") / name) in output
        assert (tmp_path / "pictures" / name).stat().st_size > 10_000
    for member in range(3):
        assert re.search(rf"(?m)^ +\d+\.\d+ s  shop/{member}  owns \d$", output)


def test_the_protocol_is_searched_and_simulated(tmp_path: Path) -> None:
    """The search is complete, and the run holds."""
    output = run(tmp_path, EXAMPLES / "check_standby.py")

    assert output.startswith("holds: all ")
    for name in ("single ownership", "full cover", "progress"):
        assert f"\n{name} holds: " in output


def test_the_suite_of_the_protocol_passes(tmp_path: Path) -> None:
    """A search, a run, and runs with drawn faults."""
    pytest.importorskip("hypothesis")
    copy_of_the_protocol(tmp_path)

    output = run(tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "test_standby.py")

    assert "3 passed" in output


def test_the_leader_survives_faults(tmp_path: Path) -> None:
    """And the tests fail without the look that the program takes."""
    pytest.importorskip("kazoo")
    text = (EXAMPLES / "test_leader.py").read_text()
    (tmp_path / "test_leader.py").write_text(text)
    broken = text.replace("return self.leads()", "return False", 1)
    assert broken != text
    (tmp_path / "test_broken.py").write_text(broken)

    options = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "3 passed" in run(tmp_path, *options, "test_leader.py")
    with pytest.raises(AssertionError, match=r"1 failed, 2 passed"):
        run(tmp_path, *options, "test_broken.py")


def test_the_lock_holds_in_virtual_time(tmp_path: Path) -> None:
    """And a lock that every process has for itself does not."""
    pytest.importorskip("greenlet")
    text = (EXAMPLES / "test_one_at_a_time.py").read_text()
    (tmp_path / "test_one_at_a_time.py").write_text(text)
    broken = text.replace('"/lock", name', 'f"/lock-{name}", name', 1)
    assert broken != text
    (tmp_path / "test_broken.py").write_text(broken)

    options = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 passed" in run(tmp_path, *options, "test_one_at_a_time.py")
    with pytest.raises(AssertionError, match=r"mutual exclusion of work, strict is violated"):
        run(tmp_path, *options, "test_broken.py")


@pytest.mark.slow
def test_a_library_from_outside_runs_in_virtual_time(tmp_path: Path) -> None:
    """tooz works without faults, and an ended session does what its page says."""
    pytest.importorskip("tooz", reason="tooz is not installed; pip install tooz")
    (tmp_path / "test_tooz.py").write_text((EXAMPLES / "test_tooz.py").read_text())

    assert "3 passed" in run(
        tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_tooz.py"
    )


def test_the_broken_protocol_has_a_counterexample(tmp_path: Path) -> None:
    """The tour says how to break it: a member works on after a notification."""
    home = copy_of_the_protocol(tmp_path) / "standby.py"
    head, work = home.read_text().split("async def work(zk):")
    broken = work.replace('LEAVE else "standby"', 'LEAVE else "working"', 1)
    assert broken != work
    home.write_text(f"{head}async def work(zk):{broken}")

    output = run(tmp_path, "-c", "import check_standby; print(check_standby.search())")

    assert output.startswith("violated: one worker")
    assert output.count("'working'") == 2


# --- on a real ZooKeeper ---------------------------------------------------------------


@pytest.mark.usefixtures("nothing_left_behind")
def test_the_standby_takes_over_live(hosts: str, tmp_path: Path) -> None:
    """One member at a time: the second works after the first has stopped."""
    pytest.importorskip("kazoo")
    output = run(tmp_path, EXAMPLES / "live_standby.py", hosts)

    assert output.split("\n")[:3] == ["ann works", "ann stops", "ben works"]


@pytest.mark.usefixtures("nothing_left_behind")
def test_an_application_divides_its_work(hosts: str, tmp_path: Path) -> None:
    """All shards, three and three, all again."""
    pytest.importorskip("kazoo")
    lines = run(tmp_path, EXAMPLES / "shards.py", hosts).splitlines()

    assert [line.partition(" works on ")[0] for line in lines] == ["ann", "ann", "ben", "ben"]
    shards = [line.partition(" works on ")[2].split(", ") for line in lines]
    assert shards[0] == shards[3] == sorted(shards[1] + shards[2])
    assert [len(part) for part in shards] == [6, 3, 3, 6]
