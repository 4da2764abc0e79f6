"""A ZooKeeper in Python with a data folder is killed five hundred times, and loses no answer.

    python bench/zookeeper_kill_points.py [--points 500] [--seed 0] [--ignore sync] [--json]

A server writes a history drawn from a seed: every kind of write, in groups that are committed
together, with a snapshot every nine transactions and a restart now and then. At one operation
of its disk - the n-th write, sync, new file, rename or removal, before it, after it, or in the
middle - the process is killed, or the disk is full. Then the machine stops, too, but in a
quarter of the cases. What was not synced is lost: all of it, some blocks of it, or what comes
after some byte; and so are new names. The recovery is killed as well in some cases.

Then the folder is opened again. What had been answered has to be there, and what is there has
to be the tree after one of the writes; a second recovery has to find the same. After an error
of the disk no commit may succeed. The exit code is 1 if any of this is broken.

With `--ignore` the disk claims to have done a sync of files (`sync`) or of names
(`sync_names`) and has not: then the bench has to find something. Three further figures are of
this machine's own disk: commits with fdatasync, of one transaction and of fifty, and the
recovery of 100,000 transactions.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of
from tests.support.zookeeper_files.kill_points import Trial, trial
from tests.support.zookeeper_files.simulated_disk import LOSSES

from watchkeeper.model.actor.operations import Create, SetData
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import opcode_of
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.tree import Session, Tree, Written, empty_tree
from watchkeeper.model.zookeeper_files.transactions import Transaction, logged
from watchkeeper.real.zookeeper_data.data_folder import DataFolder

WORDS = {
    "make": "a new file",
    "write": "a write",
    "sync": "a sync of a file",
    "rename": "a rename",
    "remove": "a removal",
    "sync_names": "a sync of names",
    "cut": "a cut of a torn end",
}
SESSION, TIMEOUT_MS = 7, 60_000
COMMITS, GROUP = 1_000, 50
PATHS = 10_000
MOST = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, recover, compare, print the table."""
    given = options(arguments)
    trials = stopped_trials(given.points, given.seed, frozenset(given.ignore))
    report = report_of(trials)
    if not given.ignore and not given.quick:
        with TemporaryDirectory(prefix="zookeeper-data-", dir=given.folder) as folder:
            report.notes += speeds(Path(folder), report)
    report.show(as_json=given.json)
    return int(any(found.wrong for found in trials))


def options(arguments: Sequence[str] | None) -> Namespace:
    """The options of the command."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--points", type=int, default=500, help="how many (500)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--quick", action="store_true", help="measure no speeds")
    parser.add_argument("--folder", type=Path, help="whose disk is measured (temporary files')")
    parser.add_argument(
        "--ignore", action="append", default=[], choices=("sync", "sync_names"), help="a defect"
    )
    return parser.parse_args(arguments)


def stopped_trials(points: int, seed: int, ignores: frozenset[str]) -> list[Trial]:
    """That many trials; those whose history was over before its kill point do not count."""
    found: list[Trial] = []
    for each in count(seed):
        if len(found) == points:
            break
        result = trial(each, ignores=ignores)
        if result.operation:
            found.append(result)
    return found


def report_of(trials: Sequence[Trial]) -> Report:
    """A row for each operation of the disk."""
    report = Report(
        "A ZooKeeper in Python with a data folder, stopped at an operation of its disk",
        (
            "stopped at",
            "points",
            "disk full",
            "in recovery",
            *LOSSES,
            "more than answered",
            "wrong",
        ),
    )
    for operation, words in WORDS.items():
        own = [found for found in trials if found.operation == operation]
        if own:
            report.rows.append([words, *row_of(own)])
    report.rows.append(["all", *row_of(trials)])
    wrong = [found for found in trials if found.wrong]
    report.data["wrong"] = [[found.seed, found.wrong] for found in wrong]
    report.notes = [f"seed {found.seed}: {found.wrong}" for found in wrong[:10]]
    report.bars.append(
        Bar("answers lost, or trees that never were", "at most", 0, "points", once(len(wrong)))
    )
    return report


def row_of(trials: Sequence[Trial]) -> list[str]:
    """How many of these trials were of which kind, and how many are wrong."""
    figures = [
        len(trials),
        sum(found.is_error for found in trials),
        sum(found.in_recovery for found in trials),
        *(sum(found.loss == loss for found in trials) for loss in LOSSES),
        sum(found.recovered > found.answered for found in trials),
        sum(bool(found.wrong) for found in trials),
    ]
    return [str(figure) for figure in figures]


# --- speeds ----------------------------------------------------------------------------


def speeds(folder: Path, report: Report) -> list[str]:
    """Commits and recovery on the disk of this machine."""
    tree, transactions = history(MOST)
    by_one = commits_a_second(folder / "one", transactions[:COMMITS], 1)
    by_group = commits_a_second(folder / "group", transactions[: COMMITS * GROUP], GROUP)
    writing_s, recovery_s = recovery_of(folder / "recovery", transactions)
    snapshot_s, loading_s = snapshot_of(folder / "recovery", tree)
    report.data |= {
        "transactions_a_second": {"1": by_one, str(GROUP): by_group},
        "recovery_s": recovery_s,
        "snapshot_s": snapshot_s,
        "loading_s": loading_s,
    }
    return [
        f"{number(by_one)} transactions a second, each committed alone; "
        f"{number(by_group)} in groups of {GROUP}",
        f"{MOST:,} transactions: written in {writing_s:.1f} s, recovered from the log in "
        f"{recovery_s:.1f} s",
        f"a snapshot of {len(tree.nodes):,} znodes: written in {snapshot_s:.2f} s, read in "
        f"{loading_s:.2f} s",
    ]


def history(transactions: int) -> tuple[Tree, list[Transaction]]:
    """A session, creates, and then changes of data."""
    before = empty_tree()
    tree = writes.open_session(before, SESSION, Session(TIMEOUT_MS))
    opened, kind = Written(tree, None), Opcode.CREATE_SESSION
    made = [logged(before, SESSION, 0, 1, 0, TIMEOUT_MS, opened, opcode=kind)]
    for index in range(transactions - 1):
        path, data = f"/{index % PATHS:06}", b"x" * 100
        operation = Create(path, data) if index < PATHS else SetData(path, data)
        written = writes.write(tree, SESSION, operation, now_ms=index)
        opcode = opcode_of(operation)
        zxid = written.tree.zxid
        made.append(logged(tree, SESSION, index, zxid, index, operation, written, opcode=opcode))
        tree = written.tree
    return tree, made


def commits_a_second(path: Path, transactions: Sequence[Transaction], group: int) -> float:
    """How many transactions become durable in a second, in groups of this size."""
    folder = DataFolder.open(path)
    begin = time.perf_counter()
    for at in range(0, len(transactions), group):
        for transaction in transactions[at : at + group]:
            folder.append(transaction)
        folder.commit()
    took_s = time.perf_counter() - begin
    folder.close()
    return len(transactions) / took_s


def recovery_of(path: Path, transactions: Sequence[Transaction]) -> tuple[float, float]:
    """How long the log takes to be written, and to be recovered."""
    begin = time.perf_counter()
    commits_a_second(path, transactions, 1000)
    written = time.perf_counter()
    DataFolder.open(path).close()
    return written - begin, time.perf_counter() - written


def snapshot_of(path: Path, tree: Tree) -> tuple[float, float]:
    """How long a snapshot takes to be written, and the folder then to be opened."""
    folder = DataFolder.open(path)
    begin = time.perf_counter()
    folder.snapshot(tree)
    written = time.perf_counter()
    folder.close()
    opened = time.perf_counter()
    DataFolder.open(path).close()
    return written - begin, time.perf_counter() - opened


if __name__ == "__main__":
    sys.exit(main())
