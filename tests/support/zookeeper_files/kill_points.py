"""A server with a data folder is killed at one operation of its disk, and starts again.

What it had answered has to be there afterwards, and what is there has to be a state that the
server was in: a prefix of its history, and never a part of a write or a mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from tests.support.zookeeper_files.histories import RandomHistory, whole
from tests.support.zookeeper_files.simulated_disk import LOSSES, Killed, Loss, SimulatedDisk, Stop
from watchkeeper.model.zookeeper.tree import Tree, empty_tree
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper_data.data_folder import DataFolder

WRITES = 70
LARGEST_GROUP = 5
PER_SNAPSHOT = 9
"""Few, so that a short history has several snapshots, and old ones are removed."""
LATE = 0.3
"""How often a commit was under way when another thread began a snapshot, which lacks it."""
RESTARTS = 0.04
"""How often a server stops after a group by itself."""
MOST_OPERATIONS = 170
"""About as many as such a history has."""
Open = Callable[[SimulatedDisk], DataFolder]


@dataclass(frozen=True, slots=True)
class Trial:
    """What happened at one kill point."""

    seed: int
    operation: str
    """The operation of the disk; empty if the history was over before."""
    is_error: bool
    in_recovery: bool
    loss: Loss
    answered: int
    """The zxid up to which everything had been answered."""
    recovered: int
    """The zxid of the tree that was recovered."""
    wrong: str
    """What is wrong with it; empty if nothing is."""


def open_folder(disk: SimulatedDisk) -> DataFolder:
    """The folder that is tested."""
    return DataFolder(disk, "data", transactions_per_snapshot=PER_SNAPSHOT)


class Life:
    """The writes of a server, until it is killed."""

    def __init__(self, random: Random, disk: SimulatedDisk, open_it: Open) -> None:
        self._random = random
        self._disk = disk
        self._open = open_it
        self.trees: dict[int, Tree] = {0: empty_tree()}
        self.answered = 0
        self.in_recovery = False
        self.committed_after_error = False
        self._before = empty_tree()
        """The tree before the last commit."""

    def run(self) -> None:
        """Write until the disk stops it; raises Killed or OSError."""
        self.in_recovery = True
        folder = self._open(self._disk)
        self.in_recovery = False
        history = RandomHistory(self._random.randint(0, 1 << 30), folder.tree)
        while history.tree.zxid < WRITES:
            for step in history.steps(self._random.randint(1, LARGEST_GROUP)):
                folder.append(step.transaction)
                self.trees[step.written.tree.zxid] = step.written.tree
            self._commit(folder, history.tree)
            if self._random.random() < RESTARTS:
                self.run()
                return

    def _commit(self, folder: DataFolder, tree: Tree) -> None:
        try:
            folder.commit()
            self.answered = tree.zxid
            if folder.should_snapshot:
                folder.snapshot(tree if self._random.random() > LATE else self._before)
            self._before = tree
        except OSError:
            self._disk.stop = None  # there is space again, but what the disk has is not known
            folder.append(RandomHistory(0, tree).step().transaction)
            with suppress(OSError):
                folder.commit()
                self.committed_after_error = True
            raise


def trial(seed: int, open_it: Open = open_folder, ignores: frozenset[str] = frozenset()) -> Trial:
    """Kill a server at a point that the seed draws, and start it again."""
    random = Random(seed)
    is_error = random.random() < 0.15
    part = random.choice((0.0, random.random(), 1.0))
    stop = Stop(random.randint(1, MOST_OPERATIONS), is_error, part)
    disk = SimulatedDisk(stop, ignores=ignores)
    loss = random.choice(LOSSES)
    life = Life(random, disk, open_it)
    with suppress(Killed, OSError):
        life.run()
    before = disk.last, is_error, life.in_recovery, loss, life.answered
    if life.committed_after_error:
        return Trial(seed, *before, 0, "a commit succeeded after an error of the disk")
    return _restarted(seed, before, random, disk.after_stop(random, loss), life, open_it)


def _restarted(
    seed: int,
    before: tuple[str, bool, bool, Loss, int],
    random: Random,
    disk: SimulatedDisk,
    life: Life,
    open_it: Open,
) -> Trial:
    if random.random() < 0.4:  # the recovery is killed, too
        disk.stop = Stop(random.randint(1, 6), part=random.choice((0.0, 0.5, 1.0)))
        try:
            open_it(disk)
        except Killed:
            pass
        except EnvironmentProblem as problem:
            return Trial(seed, *before, 0, f"the recovery failed: {problem}")
        disk = disk.after_stop(random, random.choice(LOSSES))
    try:
        tree = open_it(disk).tree
        again = open_it(disk.after_stop(random, "all")).tree
    except EnvironmentProblem as problem:
        return Trial(seed, *before, 0, f"the recovery failed: {problem}")
    return Trial(seed, *before, tree.zxid, _what_is_wrong(life, tree, again))


def _what_is_wrong(life: Life, tree: Tree, again: Tree) -> str:
    if tree.zxid < life.answered:
        return f"{life.answered} was answered, but {tree.zxid} is the last one that is there"
    if tree.zxid not in life.trees:
        return f"{tree.zxid} was never written"
    if whole(tree) != whole(life.trees[tree.zxid]):
        return f"the tree is not the one after {tree.zxid}"
    if whole(again) != whole(tree):
        return "a second recovery finds another tree"
    return ""
