"""How fast the log is on real files, against plain writes and reads of the same bytes.

    python bench/log.py [--megabytes 32] [--rounds 3] [--folder FOLDER] [--json]

  append   message sets of 1, 20 and 200 messages of 100 bytes, each checked, appended and,
           after every 500 messages, flushed; and once with no flush but the last. Where they
           are mixed, messages have 100 bytes on the average, and 20 to 180
  plain    `os.write` of the same sets to one file, with an fsync as often, unchecked
  read     300 kB at a time, as a consumer fetches, from the first offset to the last;
           plain: `os.pread` of as much
  send     the same straight from the file to a socket, at the other end of which a process
           throws it away; plain: `os.sendfile`

What is read and sent has just been written and is in the pagecache. Everything goes through
the driver that runs a coroutine in this thread, one ask after the other. Where the disk is
waited for the time is that on the wall, elsewhere that of the processor.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import CLOCKS, Bar, Clock, Report, Spread, number, parser_of, spread

from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import MakeFolder
from watchkeeper.real.storage.file_storage import FileStorage

PAYLOAD_BYTES = 100
ENTRY_BYTES = PAYLOAD_BYTES + 10
FETCH_BYTES = 300 * 1024
FLUSH_MESSAGES = 500
NEVER = 10**12


class Sets(NamedTuple):
    """How many messages a set has, after how many the disk is waited for, and their sizes."""

    messages: int
    flush: int
    is_mixed: bool = False

    @property
    def name(self) -> str:
        """How a set is called in the table."""
        return f"{self.messages}{', mixed' if self.is_mixed else ''}"


SETS = (
    *(Sets(1, FLUSH_MESSAGES), Sets(20, FLUSH_MESSAGES), Sets(200, FLUSH_MESSAGES)),
    *(Sets(200, FLUSH_MESSAGES, is_mixed=True), Sets(200, NEVER, is_mixed=True)),
    Sets(200, NEVER),
)
MB = 1_000_000

Work = Callable[[], None]


class Subject:
    """A log, and a plain file that will hold the same."""

    def __init__(self, home: Path, kind: Sets, size_bytes: int) -> None:
        self.home = home
        self.a_set = kind.messages
        self.flush_messages = kind.flush
        widths = [at // 2 * 37 % 81 * (-1) ** at * kind.is_mixed for at in range(self.a_set)]
        self.contents = encode(Message.of(os.urandom(PAYLOAD_BYTES + width)) for width in widths)
        self.sets = max(size_bytes // len(self.contents), 1)
        self.size_bytes = self.sets * len(self.contents)
        self.plain = home / "plain"
        self.storage = FileStorage(home / "logs")
        self.storage.answer(MakeFolder("clicks-0"))
        settings = LogSettings(flush_messages=kind.flush)
        self.log, _ = self.storage.run(Log.open("clicks-0", settings, was_clean=False))

    def append(self) -> None:
        """Append every set to the log."""
        for _ in range(self.sets):
            self.storage.run(self.log.append(self.contents))
        self.storage.run(self.log.flush())
        assert self.log.high_watermark == self.size_bytes

    def append_plainly(self) -> None:
        """Write every set to the file, and sync it as often."""
        descriptor = os.open(self.plain, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        unflushed = 0
        for _ in range(self.sets):
            written = os.write(descriptor, self.contents)
            assert written == len(self.contents)
            unflushed += self.a_set
            if unflushed >= self.flush_messages:
                os.fsync(descriptor)
                unflushed = 0
        os.fsync(descriptor)
        os.close(descriptor)

    def read(self) -> None:
        """Read the log from its first offset to its last."""
        offset = 0
        while found := self.storage.run(self.log.read(offset, FETCH_BYTES)):
            offset += len(found)
        assert offset == self.size_bytes

    def read_plainly(self) -> None:
        """Read the file."""
        descriptor = os.open(self.plain, os.O_RDONLY)
        offset = 0
        while found := os.pread(descriptor, FETCH_BYTES, offset):
            offset += len(found)
        os.close(descriptor)
        assert offset == self.size_bytes

    def send(self) -> None:
        """Send all of the log to a socket."""
        with nowhere() as connection:
            offset = 0
            while (view := self.log.view(offset, FETCH_BYTES)).size_bytes:
                self.storage.run(self.log.send(view, connection))
                offset += view.size_bytes
            assert offset == self.size_bytes

    def send_plainly(self) -> None:
        """Send the file."""
        descriptor = os.open(self.plain, os.O_RDONLY)
        with nowhere() as connection:
            offset = 0
            while offset < self.size_bytes:
                size_bytes = min(FETCH_BYTES, self.size_bytes - offset)
                offset += os.sendfile(connection.fileno(), descriptor, offset, size_bytes)
        os.close(descriptor)


@contextmanager
def nowhere() -> Iterator[socket.socket]:
    """A connection to a process that discards everything; ends when it has received all."""
    here, there = socket.socketpair()
    pid = os.fork()
    if not pid:
        here.close()
        room = bytearray(2**20)
        while there.recv_into(room):
            pass
        os._exit(0)
    there.close()
    try:
        yield here
    finally:
        here.close()
        os.waitpid(pid, 0)


# --- what is measured ------------------------------------------------------------------


def rate(size_bytes: int, clock: Clock, work: Work) -> float:
    """Megabytes a second."""
    began = clock()
    work()
    return size_bytes / MB / (clock() - began)


def rates_of(home: Path, kind: Sets, size_bytes: int) -> list[float]:
    """The rates of one round: append, read and send, each of ours before the plain one."""
    subject = Subject(home, kind, size_bytes)
    work = (
        *(subject.append, subject.append_plainly, subject.read, subject.read_plainly),
        *(subject.send, subject.send_plainly),
    )
    waits = CLOCKS["cpu" if kind.flush == NEVER else "wall"]
    clocks = (waits, waits, *[CLOCKS["cpu"]] * 4)
    found = [
        rate(subject.size_bytes, clock, task) for clock, task in zip(clocks, work, strict=True)
    ]
    subject.storage.close()
    return found


def measure(folder: Path, size_bytes: int, rounds: int) -> Report:
    """Measure every kind of set, each in a folder of its own."""
    report = Report(
        f"The log on real files against plain files: {rounds} rounds of {size_bytes / MB:.0f} MB",
        ("what", "messages a set", "flushed after", "MB/s", "plain", "of plain", "messages/s"),
        data={"runs": []},
    )
    for place, kind in enumerate(SETS):
        found = []
        for turn in range(rounds):
            home = folder / f"{place}-{turn}"
            found.append(rates_of(home, kind, size_bytes))
            rmtree(home)
        columns = [spread(column, higher_is_better=True) for column in zip(*found, strict=True)]
        ratios = [
            spread([rates[at] / rates[at + 1] for rates in found], higher_is_better=True)
            for at in (0, 2, 4)
        ]
        add_rows(report, kind, columns, ratios)
    return report


def add_rows(report: Report, kind: Sets, columns: list[Spread], ratios: list[Spread]) -> None:
    """Add what was measured of one kind of set; what is read does not depend on it."""
    is_last = kind == SETS[-1]
    for at, what in enumerate(("append", "read", "send") if is_last else ("append",)):
        ours, plain, ratio = columns[2 * at], columns[2 * at + 1], ratios[at]
        report.rows.append(
            [
                what,
                kind.name if what == "append" else "",
                (f"{kind.flush}" if kind.flush != NEVER else "-") if what == "append" else "",
                number(ours.median),
                number(plain.median),
                f"{ratio.median:.2f}",
                number(ours.median * MB / ENTRY_BYTES),
            ]
        )
        report.data["runs"].append(
            {
                "what": what,
                "messages_a_set": kind.messages,
                "is_mixed": kind.is_mixed,
                "flushed_after": kind.flush if kind.flush != NEVER else None,
                "megabytes_per_second": asdict(ours),
                "plain": asdict(plain),
                "of_plain": asdict(ratio),
            }
        )
        add_bar(report, what, kind, ours, ratio)


OF_PLAIN = 0.5
"""What appending has to reach of plain writes where both wait for the disk."""
NETWORK_MB_PER_S = 1250.0
"""What a network of 10 Gbit takes; sending has to fill it with one core."""


def add_bar(report: Report, what: str, kind: Sets, ours: Spread, of: Spread) -> None:
    """Add a bar where there is one."""
    if what == "append" and (kind.messages, kind.flush) == (200, FLUSH_MESSAGES):
        name = f"append, {kind.name}, flushed after {kind.flush}"
        report.bars.append(Bar(name, "at least", OF_PLAIN, "of plain", of))
    elif what == "send":
        report.bars.append(Bar(what, "at least", NETWORK_MB_PER_S, "MB/s", ours))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--megabytes", type=float, default=32, help="in each run (32)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (3)")
    parser.add_argument("--folder", type=Path, help="where to write (a temporary folder)")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="log-", dir=options.folder) as home:
        report = measure(Path(home), int(options.megabytes * MB), options.rounds)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
