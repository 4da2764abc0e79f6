"""Disks as a RAID-5 array: in each row of chunks one is the parity of the others.

A row that is written as a whole needs nothing but writes, one to each member, all at once. To
write a part of a row, the old data and the old parity have to be read first, and are written
anew when their sectors come round again: four requests for one. So a part of a row waits for
the rest as long as the array has anything else to write, though not for ever.
"""

from __future__ import annotations

from watchkeeper.model.delivery.interval_set import IntervalSet
from watchkeeper.sim.disk.disk import Counts, Disk, Together, Undo
from watchkeeper.sim.disk.models import Device
from watchkeeper.sim.disk.scheduler import Done, Landed, moved
from watchkeeper.sim.engine.kernel import Kernel

PATIENCE_US = 50_000
"""How long a part of a row waits for the rest."""


class Row:
    """A row that is to be written, and which of it is known so far."""

    __slots__ = ("calls", "covered", "landed")

    def __init__(self) -> None:
        self.covered = IntervalSet()
        self.calls: list[Done] = []
        self.landed: list[tuple[int, int, Landed]] = []
        """Who is to hear at which of its bytes have come to the disk."""


class Raid5:
    """An array of disks that survives one of them."""

    def __init__(self, kernel: Kernel, device: Device, name: str = "disk") -> None:
        assert device.members >= 3, "parity needs two disks beside it"
        self.kernel = kernel
        self.device = device
        self.members = [Disk(kernel, device, f"{name}/{at}") for at in range(device.members)]
        self.data_members = device.members - 1
        self.row_bytes = self.data_members * device.chunk_bytes
        self._rows: dict[int, Row] = {}
        """Rows of which a part waits to be written."""
        self._writes = 0
        """How many are under way."""
        self._lives = 0

    @property
    def requests(self) -> int:
        """How many requests the members have served."""
        return sum(member.requests for member in self.members)

    # --- where things are --------------------------------------------------------------

    def _place(self, address: int) -> tuple[int, int, int]:
        """Member, address there, and how far its chunk goes on."""
        chunk = self.device.chunk_bytes
        row, offset = divmod(address, self.row_bytes)
        number, inside = divmod(offset, chunk)
        member = (self._parity(row) + 1 + number) % len(self.members)
        return member, row * chunk + inside, chunk - inside

    def _parity(self, row: int) -> int:
        return len(self.members) - 1 - row % len(self.members)

    def _pieces(self, begin: int, end: int) -> dict[int, IntervalSet]:
        """Member -> what of it belongs to an interval of the array."""
        pieces: dict[int, IntervalSet] = {}
        while begin < end:
            member, there, goes_on = self._place(begin)
            size = min(goes_on, end - begin)
            pieces.setdefault(member, IntervalSet()).add(there, there + size)
            begin += size
        return pieces

    def _whole_rows(self, begin: int, end: int) -> tuple[int, int]:
        return -(-begin // self.row_bytes), end // self.row_bytes

    # --- requests ----------------------------------------------------------------------

    def submit(
        self,
        address: int,
        size_bytes: int,
        done: Done,
        *,
        is_write: bool,
        landed: Landed | None = None,
    ) -> None:
        """Request a read or a write; `done` hears whether it was served."""
        if is_write:
            self._write(address, address + size_bytes, done, landed)
        else:
            self._read(address, address + size_bytes, done)

    def _read(self, begin: int, end: int, done: Done) -> None:
        """Read from each member what it has; it reads over the parity between."""
        first, last = self._whole_rows(begin, end)
        if last - first < 2:
            pieces = self._pieces(begin, end)
        else:
            chunk = self.device.chunk_bytes
            pieces = self._pieces(begin, first * self.row_bytes)
            for member, more in self._pieces(last * self.row_bytes, end).items():
                for left, right in more:
                    pieces.setdefault(member, IntervalSet()).add(left, right)
            for member in range(len(self.members)):
                pieces.setdefault(member, IntervalSet()).add(first * chunk, last * chunk)
        self._ask(pieces, done)

    def _ask(self, pieces: dict[int, IntervalSet], done: Done) -> None:
        """Read pieces of members, and hear when all of them are there."""
        asked = _flat(pieces)
        together = Together(len(asked), done)
        for member, left, right in asked:
            self.members[member].submit(left, right - left, together, is_write=False)

    def _counted(self, done: Done) -> Done:
        """The same, for a write: while it is under way, parts of rows may wait."""
        self._writes += 1

        def over(is_good: bool) -> None:
            self._writes -= 1
            done(is_good)
            self._look_at_rows()

        return over

    # --- writing -----------------------------------------------------------------------

    def _write(self, begin: int, end: int, done: Done, landed: Landed | None) -> None:
        first, last = self._whole_rows(begin, end)
        edges = (
            [(begin, end)]
            if first > last
            else [
                (begin, first * self.row_bytes),
                (last * self.row_bytes, end),
            ]
        )
        edges = [(left, right) for left, right in edges if left < right]
        together = Together(len(edges) + (first < last), done)
        if first < last:
            tell = landed and moved(landed, first * self.row_bytes - begin)
            self._write_rows(first, last, together, tell)
        for left, right in edges:
            self._gather(left, right, together, landed and moved(landed, left - begin))

    def _write_rows(self, first: int, last: int, done: Done, landed: Landed | None) -> None:
        """Write whole rows: to every member at once."""
        chunk = self.device.chunk_bytes
        together = Together(len(self.members), self._counted(done))
        for number, member in enumerate(self.members):
            tell = landed and self._telling(number, first, landed)
            member.submit(
                first * chunk, (last - first) * chunk, together, is_write=True, landed=tell
            )

    def _telling(self, member: int, first_row: int, landed: Landed) -> Landed:
        """Says of bytes of a member which bytes of the rows they are; parity is none."""
        chunk = self.device.chunk_bytes

        def tell(begin: int, end: int) -> None:
            while begin < end:
                row, inside = divmod(begin, chunk)
                size = min(chunk - inside, end - begin)
                parity = self._parity(first_row + row)
                number = (member - parity - 1) % len(self.members)
                if member != parity:
                    at = row * self.row_bytes + number * chunk + inside
                    landed(at, at + size)
                begin += size

        return tell

    def _gather(self, begin: int, end: int, done: Done, landed: Landed | None) -> None:
        """Let a part of a row wait for the rest."""
        number, offset = divmod(begin, self.row_bytes)
        row = self._rows.get(number)
        if row is None:
            row = self._rows[number] = Row()
            self.kernel.after(PATIENCE_US, self._out_of_patience, (self._lives, number, row))
        row.covered.add(offset, offset + end - begin)
        row.calls.append(done)
        if landed is not None:
            row.landed.append((offset, offset + end - begin, landed))
        if row.covered.size == self.row_bytes:
            self._settle(number)
        else:
            self._look_at_rows()

    def _out_of_patience(self, due: tuple[int, int, Row]) -> None:
        lives, number, row = due
        if lives == self._lives and self._rows.get(number) is row:
            self._settle(number)

    def _look_at_rows(self) -> None:
        """With nothing else to do, do not wait for the rest of a row."""
        if not self._writes:
            for number in list(self._rows):
                self._settle(number)

    def _settle(self, number: int) -> None:
        """Write what there is of a row."""
        row = self._rows.pop(number)

        def done(is_good: bool) -> None:
            for call in row.calls:
                call(is_good)

        def landed(begin: int, end: int) -> None:
            for left, right, tell in row.landed:
                if max(begin, left) < min(end, right):
                    tell(max(begin, left) - left, min(end, right) - left)

        if row.covered.size == self.row_bytes:
            self._write_rows(number, number + 1, done, landed)
        else:
            self._change_row(number, row, done, landed)

    def _change_row(self, number: int, row: Row, done: Done, landed: Landed) -> None:
        """Read old data and old parity, and write both anew."""
        base, chunk = number * self.row_bytes, self.device.chunk_bytes
        pieces: dict[int, IntervalSet] = {}
        parity = pieces[self._parity(number)] = IntervalSet()
        for left, right in row.covered:
            for member, there in self._pieces(base + left, base + right).items():
                for begin, end in there:
                    pieces.setdefault(member, IntervalSet()).add(begin, end)
                    parity.add(begin, end)
        written = self._counted(done)

        def read(is_good: bool) -> None:
            if not is_good:
                written(False)
                return
            asked = _flat(pieces)
            together = Together(len(asked), written)
            for member, left, right in asked:
                tell = moved(self._telling(member, number, landed), left - number * chunk)
                self.members[member].submit(
                    left, right - left, together, is_write=True, landed=tell
                )

        self._ask(pieces, read)

    # --- the rest ----------------------------------------------------------------------

    def flush(self, done: Done) -> None:
        """Let every member swear that what it wrote is there to stay."""
        together = Together(len(self.members), done)
        for member in self.members:
            member.flush(together)

    def slow_down(self, times: int, effect: Counts) -> Undo:
        """Let every request of every member take so many times as long."""
        undoes = [member.slow_down(times, effect) for member in self.members]
        return lambda: _all(undoes)

    def fail(self, effect: Counts, *, reads: bool = True, writes: bool = True) -> Undo:
        """Answer requests with an error: more members are lost than parity makes up for."""
        undoes = [member.fail(effect, reads=reads, writes=writes) for member in self.members]
        return lambda: _all(undoes)

    def tear(self, effect: Counts) -> Undo:
        """At the end of the host, let sectors of a write arrive in any order, or not."""
        undoes = [member.tear(effect) for member in self.members]
        return lambda: _all(undoes)

    def lose_power(self) -> None:
        """Stop where it is; say of each write how much of it has come to the disk."""
        self._lives += 1
        self._rows.clear()
        self._writes = 0
        for member in self.members:
            member.lose_power()


def _all(undoes: list[Undo]) -> None:
    for undo in undoes:
        undo()


def _flat(pieces: dict[int, IntervalSet]) -> list[tuple[int, int, int]]:
    return [(member, left, right) for member, ranges in pieces.items() for left, right in ranges]
