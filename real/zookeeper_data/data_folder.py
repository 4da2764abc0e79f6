"""The data folder of a server: what it has promised is here.

How it works
  `append` keeps transactions in memory; `commit` writes them to the log file and returns when
  the disk has confirmed them. Only then may they be answered. After an error of the disk it
  is not known what the disk has, so every later commit fails too.

  The first commit, and the first one after each snapshot, makes a log file that is named by
  its first transaction. A snapshot is written beside its place, synced, and renamed; so a file
  of its name is always whole. Three snapshots are kept, and the log since the oldest of them.

  A snapshot may be written in another thread while commits go on: its tree is a value, and it
  touches no file that a commit writes to. The next commit then begins the new log file.

  All files are in the folder `version-2`, where Apache's servers look for them too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.model.zookeeper_files.snapshot import encode_snapshot
from watchkeeper.model.zookeeper_files.transactions import Transaction
from watchkeeper.model.zookeeper_files.txn_log import FILE_HEADER, encode_record
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper_data.file_layer import Disk, FolderOnDisk, InUse, OpenFile
from watchkeeper.real.zookeeper_data.recovery import log_name, recover, snapshot_name, zxids_of

SUBFOLDER = "version-2"
TRANSACTIONS_PER_SNAPSHOT = 100_000
SNAPSHOTS_KEPT = 3
EXPECTED = frozenset({"myid", "lost+found"})
"""What may be in the folder beside it: a server's number, and what a file system makes."""
UNFINISHED = "unfinished-snapshot"


class DataFolder:
    """A folder that one server writes to."""

    def __init__(
        self,
        disk: Disk,
        where: str,
        *,
        transactions_per_snapshot: int = TRANSACTIONS_PER_SNAPSHOT,
    ) -> None:
        """Recover what the disk holds; raises EnvironmentProblem and OSError."""
        self._disk = disk
        self._per_snapshot = transactions_per_snapshot
        self._log: OpenFile | None = None
        self._is_log_over = False
        self._waiting: list[bytes] = []
        self._first_waiting = 0
        self._error: OSError | None = None
        recovered = recover(disk, where)
        self.tree = recovered.tree
        """The tree that was recovered."""
        self.notices = recovered.notices
        """What was passed over or cut off to recover it, a sentence each."""
        self.last_zxid = self.tree.zxid
        """The last transaction that was appended."""
        self._committed = recovered.replayed
        self._in_snapshot = 0
        """How much of what was committed the last snapshot holds, both counted from the start."""
        if recovered.snapshot_zxid is None:
            # Apache's servers take no log without a snapshot for a data folder.
            self.snapshot(self.tree)

    @classmethod
    def open(cls, path: Path) -> DataFolder:
        """Open a folder, or make it; raises EnvironmentProblem if it cannot be used."""
        folder = Path(path) / SUBFOLDER
        try:
            _refuse_other_contents(Path(path))
            disk = FolderOnDisk(folder)
        except InUse:
            raise EnvironmentProblem(
                f"another process uses the data in {path}; end it, or use another folder"
            ) from None
        except OSError as error:
            raise _unusable(path, error) from None
        try:
            return cls(disk, str(folder))
        except OSError as error:
            disk.close()
            raise _unusable(path, error) from None
        except BaseException:
            disk.close()
            raise

    # --- the log -----------------------------------------------------------------------

    def append(self, transaction: Transaction) -> None:
        """Take a transaction for the next commit; zxids ascend."""
        assert transaction.zxid > self.last_zxid, "each transaction has a higher zxid"
        if not self._waiting:
            self._first_waiting = transaction.zxid
        self._waiting.append(encode_record(transaction))
        self.last_zxid = transaction.zxid

    def commit(self) -> None:
        """Return when everything that was appended is durable; raises OSError for ever after."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        with self._remembering_errors():
            if self._is_log_over:
                self._is_log_over = False
                self._end_log()
            log, is_new = self._log, self._log is None
            if log is None:
                log = self._log = self._disk.make(log_name(self._first_waiting))
                log.write(FILE_HEADER)
            log.write(b"".join(waiting))
            log.sync()
            if is_new:
                self._disk.sync_names()
        self._committed += len(waiting)

    # --- snapshots ---------------------------------------------------------------------

    @property
    def should_snapshot(self) -> bool:
        """Whether so much was committed since the last snapshot that another one is due."""
        return self._committed - self._in_snapshot >= self._per_snapshot

    def snapshot(self, tree: Tree) -> None:
        """Write a snapshot of a tree whose transactions are all committed; raises OSError.

        Another thread may commit meanwhile, but not take a snapshot.
        """
        self._in_snapshot = self._committed
        self._is_log_over = True
        with self._remembering_errors():
            file = self._disk.make(UNFINISHED)
            for part in encode_snapshot(tree):
                file.write(part)
            file.sync()
            file.close()
            self._disk.rename(UNFINISHED, snapshot_name(tree.zxid))
            self._disk.sync_names()
            self._purge()

    def _end_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _purge(self) -> None:
        """Remove all but the newest snapshots, and what of the log is older than all of them."""
        snapshots = zxids_of(self._disk, "snapshot")
        for zxid in snapshots[:-SNAPSHOTS_KEPT]:
            self._disk.remove(snapshot_name(zxid))
        oldest = snapshots[-SNAPSHOTS_KEPT:][0]
        logs = zxids_of(self._disk, "log")
        # The last file that begins at or before the snapshot may hold what follows it.
        needed = max((zxid for zxid in logs if zxid <= oldest + 1), default=0)
        for zxid in logs:
            if zxid < needed:
                self._disk.remove(log_name(zxid))

    # --- errors and the end ------------------------------------------------------------

    @contextmanager
    def _remembering_errors(self) -> Iterator[None]:
        if self._error is not None:
            raise self._error
        try:
            yield
        except OSError as error:
            self._error = error
            raise

    def close(self) -> None:
        """Let others use the folder; what was not committed is lost."""
        self._end_log()
        self._disk.close()


def _refuse_other_contents(path: Path) -> None:
    """Raise EnvironmentProblem for a folder that holds something else than a server's data."""
    if not path.is_dir() or (path / SUBFOLDER).exists():
        return
    others = sorted(file.name for file in path.iterdir() if file.name not in EXPECTED)
    if others:
        raise EnvironmentProblem(
            f"the folder {path} is not of a ZooKeeper: it has no {SUBFOLDER}, but {others[0]}; "
            "name an empty folder, or one that a ZooKeeper has written"
        )


def _unusable(path: Path, error: OSError) -> EnvironmentProblem:
    reason = error.strerror or error
    return EnvironmentProblem(
        f"the data folder {path} cannot be used: {reason}; name a folder that can be written to"
    )
