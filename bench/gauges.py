"""What it costs a live broker to tell of its files, in CPU time.

    python bench/gauges.py [--repeat 7] [--calls 3000] [--folder FOLDER] [--json]

  append   three messages are appended to a file whose syncs are written down, without counting
           what is at risk and with it
  send     a part of a file is to be sent: without asking the kernel which of its pages are in
           memory, and asking it, by each way that there is; beside them a read that is not to
           block (`RWF_NOWAIT`), which would tell as well
  look     four times a second: how all stands in a folder of as many files

Nothing is sent, and no disk is waited for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import CLOCKS, Report, Spread, number, parser_of, spread

from watchkeeper.model.log.storage import Append, CreateFile
from watchkeeper.real.storage.host_crash import WatchedStorage
from watchkeeper.real.storage.metrics import MeteredStorage
from watchkeeper.real.storage.pagecache import PageCounter, by_cachestat, by_mincore

APPENDED = b"x" * 330
SIZES = (4096, 300 * 1024)
FILES = (10, 100, 1_000)
FILE_BYTES = 5_000
FILE = "segment"
WAYS: tuple[PageCounter, ...] = (by_cachestat, by_mincore)

Call = Callable[[], object]


def main() -> None:
    """Measure each several times, and print a table."""
    parser = parser_of(__doc__)
    parser.add_argument("--repeat", type=int, default=7, help="how often (7)")
    parser.add_argument("--calls", type=int, default=3_000, help="calls each time (3,000)")
    parser.add_argument("--folder", type=Path, help="where to put files (a temporary one)")
    asked = parser.parse_args()
    clock = CLOCKS[asked.clock]

    def measure(call: Call, calls: int) -> Spread:
        """Microseconds a call."""
        found = []
        for _ in range(asked.repeat):
            began = clock()
            for _ in range(calls):
                call()
            found.append((clock() - began) / calls * 1e6)
        return spread(found)

    report = Report("what telling costs, microseconds of CPU", ("what", "how", "best", "median"))
    with TemporaryDirectory(dir=asked.folder) as folder:
        for what, how, call, share in subjects(Path(folder)):
            cost = measure(call, max(asked.calls // share, 1))
            report.rows.append([what, how, number(cost.best), number(cost.median)])
            report.data[f"{what}, {how}"] = cost.median
    report.show(as_json=asked.json)


def subjects(home: Path) -> Iterator[tuple[str, str, Call, int]]:
    """What is measured, how, by what call; and by how much fewer calls than the others."""
    for kind in (WatchedStorage, MeteredStorage):
        storage = kind(home / kind.__name__ / "logs", home / kind.__name__ / "records")
        storage.answer(CreateFile(FILE))
        how = "counted" if kind is MeteredStorage else "not counted"
        effect = Append(FILE, APPENDED)
        yield "append", how, partial(storage.answer, effect), 1
    assert isinstance(storage, MeteredStorage), "the last of the two"
    storage.answer(Append(FILE, b"x" * max(SIZES)))
    with storage.lease(FILE) as descriptor:
        for size_bytes in SIZES:
            yield from sending(descriptor, size_bytes)
    for count in FILES:
        for number_of in range(count):
            (home / "MeteredStorage" / "logs" / str(number_of)).write_bytes(b"x" * FILE_BYTES)
        yield "look", f"{count:,} files", storage.seen, 1_000


def sending(descriptor: int, size_bytes: int) -> Iterator[tuple[str, str, Call, int]]:
    """Each way to know what is in memory of a part of a file."""
    what = f"send {size_bytes:,} bytes"
    for way in WAYS:
        try:
            way(descriptor, 0, size_bytes)
        except OSError:
            continue
        yield what, way.__name__, partial(way, descriptor, 0, size_bytes), 1
    room = bytearray(size_bytes)
    yield what, "RWF_NOWAIT", partial(os.preadv, descriptor, [room], 0, os.RWF_NOWAIT), 10


if __name__ == "__main__":
    main()
