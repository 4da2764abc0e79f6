"""The data folder of a ZooKeeper is stopped at every call to its disk, and has to lose nothing.

    python bench/zookeeper_kill_points.py [--points 500] [--seed 0] [--json]

A server appends transactions of random writes, commits them in groups, takes snapshots, and
starts again, all of it drawn from a seed, on a disk in memory (`support/lossy_disk.py`). The disk
stops at the n-th call, and what was not synced is lost: nothing of it (the process was killed),
all of it, its tail, or sectors and names in the middle. Then the server starts again on what is
left, and every other time the disk stops again while it recovers. The tree has to be that after
some transaction: none older than the last one that a commit had promised, none newer than the
last one that was appended. The next life goes on from there. The exit code is 1 if anything is
lost, or comes from nowhere.
"""

from __future__ import annotations

import itertools
import sys
from argparse import Namespace
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.lossy_disk import CALLS, LOSSES, Loss, LossyDisk, Stopped
from bench.support.report import Bar, Report, once, parser_of
from bench.support.zookeeper_writes import RandomWrites, new_epoch, visible

from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper_data.data_folder import DataFolder

PER_SNAPSHOT = 25
MOST_IN_A_GROUP = 6
LATEST = {"make": 5, "write": 40, "sync": 30, "rename": 3, "sync names": 6, "remove": 4, "cut": 2}
"""At which call of a kind the disk stops, at the latest."""
LONGEST_LIFE = 100
"""How many groups a life commits, at most."""
LIVES = 12
"""How many stops one history lives through."""


@dataclass(slots=True)
class Stop:
    """One stop of the disk, and what came of it."""

    call: str
    loss: Loss
    in_recovery: bool
    lost: str = ""
    """What is wrong with the tree that was recovered; empty if nothing is."""
    kept: int = 0
    """How many transactions under way are there."""


@dataclass(slots=True)
class History:
    """A history that lives through stops of its disk."""

    random: Random
    disk: LossyDisk = field(default_factory=LossyDisk)
    trees: dict[int, Tree] = field(default_factory=dict)
    """Zxid -> the tree after that transaction, since the last one that was promised."""
    promised: int = 0
    """The last transaction that a commit has promised to keep."""

    def live(self, call: str, loss: Loss, *, also_in_recovery: bool) -> list[Stop]:
        """One life that ends in a call of this kind; then recover, which may be stopped too.

        A life that has no such call for long ends in the next call of any kind.
        """
        self.disk.stop_in, self.disk.stop_at = call, self.random.randint(1, LATEST[call])
        with suppress(Stopped):
            self._serve(self._open())
        stops = [self._recover(loss, is_first=True)]
        if also_in_recovery and not stops[0].lost:
            self.disk.stop_at = self.random.randint(1, 3)
            try:
                self._open()
            except Stopped:
                stops.append(self._recover(loss, is_first=False))
            self.disk.stop_at = 0
        return stops

    def _open(self) -> DataFolder:
        return DataFolder(self.disk, "the disk", transactions_per_snapshot=PER_SNAPSHOT)

    def _serve(self, folder: DataFolder) -> None:
        random = self.random
        writer = RandomWrites(random, folder.tree)
        if random.random() < 0.2:
            writer.tree = new_epoch(writer.tree)
        self.trees[folder.tree.zxid] = folder.tree
        for group in itertools.count():
            if group == LONGEST_LIFE:
                self.disk.stop_in, self.disk.stop_at = "", 1
            for _ in range(random.randint(1, MOST_IN_A_GROUP)):
                folder.append(writer.next())
                self.trees[writer.tree.zxid] = writer.tree
            folder.commit()
            self._promise(writer.tree.zxid)
            if folder.should_snapshot:
                folder.snapshot(writer.tree)
            if random.random() < 0.1:
                folder.close()
                folder = self._open()

    def _promise(self, zxid: int) -> None:
        self.promised = zxid
        self.trees = {later: tree for later, tree in self.trees.items() if later >= zxid}

    def _recover(self, loss: Loss, *, is_first: bool) -> Stop:
        stop = Stop(self.disk.stopped_in, loss, not is_first)
        self.disk = self.disk.after_power_loss(loss, self.random)
        # A copy is opened: opening may cut, and the next life has to see the disk as it was left.
        copy = self.disk.after_power_loss("nothing", self.random)
        try:
            tree = DataFolder(copy, "the disk").tree
        except EnvironmentProblem as problem:
            stop.lost = f"it does not start: {problem}"
            return stop
        stop.lost = self._wrong_with(tree)
        stop.kept = sum(self.promised < zxid <= tree.zxid for zxid in self.trees)
        if not stop.lost and is_first:
            # What came back is promised from now on: clients have seen it.
            self._promise(tree.zxid)
        return stop

    def _wrong_with(self, tree: Tree) -> str:
        if tree.zxid < self.promised:
            return f"{self.promised:#x} was answered, but the last one there is {tree.zxid:#x}"
        expected = self.trees.get(tree.zxid)
        if expected is None:
            return "" if tree.zxid == self.promised == 0 else f"{tree.zxid:#x} was never written"
        wanted, found = visible(expected), visible(tree)
        different = [part for part in wanted if wanted[part] != found[part]]
        return f"after {tree.zxid:#x} other {', '.join(different)}" if different else ""


def stops_of(points: int, seed: int, *, forgets: str = "") -> list[Stop]:
    """So many stops, each history with up to `LIVES` of them, on disks that forget a call."""
    stops: list[Stop] = []
    number = 0
    while len(stops) < points:
        random = Random(f"{seed}/{number}")
        number += 1
        history = History(random, LossyDisk(forgets=forgets))
        for _ in range(LIVES):
            call, loss = random.choice(CALLS), random.choice(LOSSES)
            stops += history.live(call, loss, also_in_recovery=random.random() < 0.5)
            if stops[-1].lost or len(stops) >= points:
                break
    return stops[:points]


def main(arguments: Namespace) -> int:
    """Run the bench; 1 if anything was lost."""
    stops = stops_of(arguments.points, arguments.seed)
    report = report_of(stops)
    report.show(as_json=arguments.json)
    return int(any(stop.lost for stop in stops))


def report_of(stops: list[Stop]) -> Report:
    """The stops as a table: in which call, what was lost, what came of it."""
    report = Report(
        "Stops of a ZooKeeper's disk, and what is there afterwards",
        ("stopped in", *(f"lost: {loss}" for loss in LOSSES), "in recovery", "wrong"),
    )
    for call in sorted({stop.call for stop in stops}):
        here = [stop for stop in stops if stop.call == call]
        by_loss = Counter(stop.loss for stop in here)
        report.rows.append(
            [
                call,
                *(str(by_loss[loss]) for loss in LOSSES),
                str(sum(stop.in_recovery for stop in here)),
                str(sum(bool(stop.lost) for stop in here)),
            ]
        )
    wrong = [stop for stop in stops if stop.lost]
    report.bars.append(
        Bar("stops after which anything was wrong", "at most", 0, "", once(len(wrong)))
    )
    kept = sum(stop.kept for stop in stops)
    report.notes = [
        f"{len(stops)} stops; {kept} transactions that were under way were there afterwards",
        *(f"{stop.call}, lost {stop.loss}: {stop.lost}" for stop in wrong[:10]),
    ]
    report.data = {"stops": len(stops), "kept": kept, "wrong": len(wrong)}
    return report


def _parser() -> Any:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--points", type=int, default=500, help="how many stops (500)")
    parser.add_argument("--seed", type=int, default=0, help="of everything drawn (0)")
    return parser


if __name__ == "__main__":
    sys.exit(main(_parser().parse_args()))
