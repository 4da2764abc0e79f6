"""Makes the page about the pagecache: the design page's statements beside simulated results."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from watchkeeper.experiment.apparatus.rows import Outcome, Row, shown, shown_said
from watchkeeper.experiment.catalogue import EXPERIMENTS
from watchkeeper.sim.disk.host_costs import GIB, MACHINES, MachineProfile

Page = Callable[..., str]
Table = Callable[[list[str], Iterator[list[str]]], str]

INTRO = (
    "A broker of the early design pages has no cache of its own. It appends to files and sends "
    "from files, and the operating system keeps parts of them in memory: the *pagecache*. The "
    "design page gives reasons, some with numbers, and more for how clients and brokers talk. "
    "Here each of them is an experiment, in a simulated host on a server of the page's time and "
    "on one of today, or in a simulated group.",
    "[`watchkeeper experiment`](../how-to/experiments.md) runs them, with `--profile` on "
    "[a machine that was measured](../how-to/calibrate.md). No result is an input: each follows "
    "from the figures of a machine, in the table at the end, and from the actions of the "
    "experiment. A number *differs* if it misses that of the page by more than half.",
)
MODEL = (
    "## What is simulated",
    "**Pages** of 4 KiB are kept as intervals: pages that are used together are one object. The "
    "least recently used clean page is evicted first. Dirty pages are written back when more "
    "than a tenth of the memory is dirty, when they are half a minute old, or at a flush; above "
    "a fifth, writers wait. A sequential reader gets pages ahead of time, in windows that "
    "double; a random reader gets only the requested pages. A page in transit is not requested "
    "twice.",
    "**Disks** merge adjacent requests and serve them in one direction. A rotating disk has an "
    "arm at a position and a platter at an angle, so that rewriting a block after reading it "
    "waits for a rotation. A RAID-5 array writes whole rows at once, and for a part of one reads "
    "old data and old parity first. The speed of its random writes follows from that and is not "
    "an input.",
    "**Calls, copies and the network** have the costs of the table, and shared resources: cores, "
    "the memory bus, the network card.",
    "**The end of a process** does not affect its storage. **The end of a host** keeps the "
    "flushed data, the data that were written back, and of the current write the sectors that "
    "had passed. A file may come back longer than its data, with zeros at its end.",
    "### What is not simulated",
    "- The pagecache is strictly LRU. Linux keeps pages that were read once apart from pages "
    "that were used again, so that a large sequential read evicts less there.\n"
    "- Every write of a disk goes to the medium. A disk with a volatile cache that acknowledges "
    "early would lose more.\n"
    "- The network loses no packets; a connection sends as fast as the other side receives.\n"
    "- A B-tree is modelled by the pages that it touches, not by its keys, with one lock.",
)


def pagecache_page(page: Page, table: Table) -> str:
    """The page."""
    parts = [*INTRO]
    disagreements: list[str] = []
    for name, experiment in EXPERIMENTS.items():
        found = {name: experiment.measure(machine) for name, machine in MACHINES.items()}
        parts += [f"## {name}", f"> {experiment.states}", experiment.how]
        parts.append(table(_head(), _rows(found)))
        parts += found["page"].remarks
        differing = [row for row in found["page"].rows if row.agrees is False]
        disagreements += [f"- **{name}**: {_difference(row)}." for row in differing]
    parts += ["## Where the simulation and the page differ", "\n".join(disagreements)]
    return page(
        "The pagecache, and what else the design page states", *parts, *MODEL, *_machines(table)
    )


def _head() -> list[str]:
    return ["", "the page", *(f"`{name}`" for name in MACHINES), "unit", ""]


def _rows(found: dict[str, Outcome]) -> Iterator[list[str]]:
    for rows in zip(*(outcome.rows for outcome in found.values()), strict=True):
        first: Row = rows[0]
        verdict = {None: "", True: "agrees", False: "**differs**"}[first.agrees]
        values = [shown(row.value) for row in rows]
        yield [first.what, shown_said(first.said), *values, first.unit, verdict]


def _difference(row: Row) -> str:
    return f"{row.what}, {shown(row.value)} {row.unit} against {shown_said(row.said)}"


def _machines(table: Table) -> Iterator[str]:
    yield "## The machines"
    yield "\n".join(
        f"- `{machine.name}`: {machine.about}; {machine.device.about}."
        for machine in MACHINES.values()
    )
    yield table(["", *(f"`{name}`" for name in MACHINES)], _figures(list(MACHINES.values())))


def _figures(machines: list[MachineProfile]) -> Iterator[list[str]]:
    figures: dict[str, Callable[[MachineProfile], str]] = {
        "disks, data disks": lambda m: f"{m.device.members}, {max(m.device.members - 1, 1)}",
        "sequential writes of one disk, MB/s": lambda m: shown(m.device.write_bytes_per_s / 1e6),
        "sequential reads of one disk, MB/s": lambda m: shown(m.device.read_bytes_per_s / 1e6),
        "cost of a request without its data, read and write, us": lambda m: (
            f"{m.device.read_us}, {m.device.write_us}"
        ),
        "seek to the next track, and across all, us": lambda m: (
            f"{m.device.arm.track_us}, {m.device.arm.stroke_us}" if m.device.arm else ""
        ),
        "rotations a minute": lambda m: (
            str(m.device.arm.rotations_per_minute) if m.device.arm else ""
        ),
        "parallel requests": lambda m: str(m.device.channels),
        "memory for pages, GiB": lambda m: str(m.memory_bytes // GIB),
        "cores": lambda m: str(m.cores),
        "a system call, ns": lambda m: str(m.call_ns),
        "additional cost of a write call, ns": lambda m: str(m.write_ns),
        "copies by one core, MB/s": lambda m: shown(m.copy_bytes_per_s / 1e6),
        "a new page, ns": lambda m: str(m.page_ns),
        "a random read of memory, ns": lambda m: str(m.access_ns),
        "the memory bus, MB/s": lambda m: shown(m.bus_bytes_per_s / 1e6),
        "the network, MB/s": lambda m: shown(m.network_bytes_per_s / 1e6),
        "to another machine, one way, us": lambda m: str(m.hop_us),
        "largest read-ahead, KiB": lambda m: str(m.readahead_bytes >> 10),
        "dirty pages before write-back, and before writers wait, %": lambda m: (
            f"{m.background_percent}, {m.dirty_percent}"
        ),
    }
    for label, figure in figures.items():
        yield [label, *(figure(machine) for machine in machines)]
