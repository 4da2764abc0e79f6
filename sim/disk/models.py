"""Disks as rows of a table: what one can do, from which follows how long a request takes.

A rotating disk has an arm: a request that does not go on where the last one ended waits for
the arm and for its sector to come round. A disk without moving parts takes a while for each
request and serves several at once; their data still pass one after the other.

The rotating disk here writes 60 MB/s. That is the one number taken from the design page:
five disks of a RAID-5 array of six hold data, and the page's array writes 300 MB/s in line.
What the array makes of random writes is not written down anywhere here; it follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from watchkeeper.sim.engine.random_streams import Quantiles, quantiles

NS = 1_000_000_000
MIB = 1 << 20
SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Arm:
    """What moves in a rotating disk."""

    rotations_per_minute: int
    track_us: int
    """From one track to the next."""
    stroke_us: int
    """From the first track to the last."""

    @property
    def rotation_ns(self) -> int:
        """How long a sector takes to come round again."""
        return 60 * NS // self.rotations_per_minute

    def seek_ns(self, distance_bytes: int, capacity_bytes: int) -> int:
        """How long the arm takes: it speeds up half of the way, so with the square root."""
        part = isqrt(min(distance_bytes, capacity_bytes) * 10**12 // capacity_bytes)
        return self.track_us * 1000 + (self.stroke_us - self.track_us) * part // 1000


@dataclass(frozen=True, slots=True)
class Device:
    """One kind of disk."""

    name: str
    about: str
    read_bytes_per_s: int
    write_bytes_per_s: int
    """In line, at which rate data go over the disk or its bus."""
    read_us: int
    """What each read takes beside its data."""
    write_us: int
    channels: int
    """How many requests are served at once."""
    flush: Quantiles
    """Until the disk has sworn that what it wrote is there to stay."""
    capacity_bytes: int
    arm: Arm | None = None
    most_bytes: int = MIB
    """The longest request; longer ones are cut up."""
    members: int = 1
    """More than one: a RAID-5 array of so many of these."""
    chunk_bytes: int = 64 << 10
    """How much of a row of an array is on one member."""

    @property
    def room_bytes(self) -> int:
        """What fits on it; of an array, one member's worth is parity."""
        return self.capacity_bytes * max(self.members - 1, 1)

    def rate(self, *, is_write: bool) -> int:
        """Bytes a second, in line."""
        return self.write_bytes_per_s if is_write else self.read_bytes_per_s


def always(us: int) -> Quantiles:
    """What always takes as long."""
    return quantiles([(0, us), (100, us)])


_ARM = Arm(rotations_per_minute=7200, track_us=800, stroke_us=15_200)
_TERABYTE = 10**12

DEVICES = {
    device.name: device
    for device in (
        Device(
            "raid-5",
            "six 7200 rpm SATA disks as RAID-5: the design page's",
            60_000_000,
            60_000_000,
            read_us=50,
            write_us=50,
            channels=1,
            flush=always(0),
            capacity_bytes=_TERABYTE,
            arm=_ARM,
            members=6,
        ),
        Device(
            "sata-7200",
            "one of those disks",
            60_000_000,
            60_000_000,
            read_us=50,
            write_us=50,
            channels=1,
            flush=always(0),
            capacity_bytes=_TERABYTE,
            arm=_ARM,
        ),
        Device(
            "sata-ssd",
            "an SSD on SATA",
            520_000_000,
            460_000_000,
            read_us=90,
            write_us=60,
            channels=16,
            flush=always(900),
            capacity_bytes=_TERABYTE,
        ),
        Device(
            "nvme",
            "an NVMe SSD",
            3_200_000_000,
            2_400_000_000,
            read_us=80,
            write_us=20,
            channels=64,
            flush=always(400),
            capacity_bytes=2 * _TERABYTE,
        ),
    )
}
"""Every kind of disk that is known here, by name."""
