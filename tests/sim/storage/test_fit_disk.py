"""A disk is measured, a machine is found that takes as long, and a profile file holds both."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.api.profile import profile_of
from watchkeeper.cli.main import run_command
from watchkeeper.experiment.apparatus.host import new_host, run
from watchkeeper.model.calibration.disk import MIB, DiskSizes, MeasuredDisk, Surroundings
from watchkeeper.model.calibration.latency import distribution
from watchkeeper.model.log.format.contents import Series, whole_series
from watchkeeper.model.log.storage import Append, CreateFile, Flush, Read, Send
from watchkeeper.operate.disk_profile import disk_section, machine_of_profile, machine_with
from watchkeeper.real.calibration.disk import measure_disk
from watchkeeper.real.calibration.machine import USUAL, surroundings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.scenarios import ScenarioError
from watchkeeper.scenarios.profiles.disk import DiskSimulationModel
from watchkeeper.scenarios.profiles.profile import load_profile, profile_text
from watchkeeper.sim.calibration.fit_disk import OF_DEVICE, OF_MACHINE, fit_disk
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.storage.host_effects import Delivered, Idle

TINY = DiskSizes(file_mib=2, rounds=1, places=5, first_syncs=2, syncs=5, calls=50)
MB = 1_000_000
ZOOKEEPER = "watchkeeper_profile: 1\nzookeeper:\n  simulation: {read_us: 90}\n"

MEASURED = MeasuredDisk(
    is_direct=True,
    file_bytes=256 * MIB,
    call_ns=400,
    overwrite_bytes_per_s=4_000 * MB,
    append_bytes_per_s=2_000 * MB,
    small_append_bytes_per_s=700 * MB,
    write_back_bytes_per_s=500 * MB,
    read_bytes_per_s=900 * MB,
    sendfile_bytes_per_s=1_500 * MB,
    copying_bytes_per_s=1_000 * MB,
    read=distribution(range(80, 180), "a read"),
    write=distribution(range(40, 140), "a write"),
    sync=distribution(range(900, 1_900, 10), "a flush"),
    surroundings=Surroundings(4, 8 << 30, 512 << 10, 10, 20, 30_000_000, 5_000_000),
)
"""A disk that a process might have measured."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `--quick` measure hardly anything."""
    monkeypatch.setattr("watchkeeper.operate.calibrate_disk.DISK_QUICK", TINY)


# --- measuring -------------------------------------------------------------------------


def figures(measured: MeasuredDisk) -> dict[str, int]:
    """Whatever is a number."""
    names = (name for name in MeasuredDisk.__dataclass_fields__ if name != "is_direct")
    return {name: value for name in names if isinstance(value := getattr(measured, name), int)}


def test_a_disk_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    """Every figure is there; the file has gone, and is not open either."""
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    notes: list[str] = []
    measured = measure_disk(tmp_path, TINY, notes.append)

    assert all(value > 0 for value in figures(measured).values())
    assert (measured.read.number, measured.write.number, measured.sync.number) == (5, 5, 5)
    assert measured.file_bytes == 2 * MIB
    assert list(tmp_path.iterdir()) == []
    assert len(notes) == 5
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_where_the_pagecache_cannot_be_passed_it_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without direct access is measured all the same, and says so."""
    plain = os.open

    def refusing(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return plain(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refusing)
    measured = measure_disk(tmp_path, TINY, lambda what: None)

    assert not measured.is_direct
    assert all(value > 0 for value in figures(measured).values())


def test_what_cannot_be_measured_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder, no room, no right to write."""
    with pytest.raises(EnvironmentProblem, match="there is no folder"):
        measure_disk(tmp_path / "none", TINY, lambda what: None)
    huge = replace(TINY, file_mib=1 << 40)
    with pytest.raises(EnvironmentProblem, match="has no room"):
        measure_disk(tmp_path, huge, lambda what: None)

    def failing(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(EnvironmentProblem, match="cannot be measured: Input/output error"):
        measure_disk(tmp_path, TINY, lambda what: None)
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_says_of_itself(tmp_path: Path) -> None:
    """Cores, memory, and its ways with dirty pages."""
    around = surroundings(tmp_path)

    assert around.cores >= 1
    assert around.memory_bytes > 1 << 26
    assert around.readahead_bytes >= 1 << 10
    assert 0 < around.background_percent <= around.dirty_percent or around.dirty_percent < 100
    assert around.expire_us > 0
    assert set(USUAL) <= {
        *("dirty_background_ratio", "dirty_ratio"),
        *("dirty_expire_centisecs", "dirty_writeback_centisecs"),
    }


# --- finding ---------------------------------------------------------------------------


def machine() -> MachineProfile:
    """The machine that is found for what was measured."""
    given = disk_section(MEASURED, Path("/somewhere")).simulation.given
    return machine_with(given, "measured")


def rate(total: int, *bodies: Any) -> float:
    """Bytes a second of the last of these, one after the other, on the machine that was found."""
    host = new_host(machine())
    begin = 0
    for body in bodies:
        begin = host.kernel.now_us
        run(host, [host.start(host.process(), body(host))])
    return total * 1e6 / (host.kernel.now_us - begin)


def appending(each: int, total: int) -> Any:
    """Append so much, in parts."""

    async def body(_: Any) -> None:
        await CreateFile("log")
        for _ in range(total // each):
            await Append("log", whole_series(Series("p", 0, 1, each - 10)))

    return body


def sending(each: int, total: int) -> Any:
    """Send so much, in parts."""

    async def body(host: Any) -> None:
        to = host.connection()
        for at in range(0, total, each):
            await Send("log", at, each, to)
        await Delivered(to)

    return body


async def nothing(_: Any) -> None:
    """Only make the file, which takes its time."""


def test_the_machine_takes_as_long_as_what_was_measured() -> None:
    """Appends long and short, sending, reading in line, and what a flush takes."""
    total = 64 * MIB
    host = new_host(machine())
    run(host, [host.start(host.process(), appending(4096, 4096)(host))])
    made_s = host.kernel.now_us / 1e6

    def appended(each: int) -> float:
        return total / (total / rate(total, appending(each, total)) - made_s)

    assert appended(MIB) == pytest.approx(MEASURED.append_bytes_per_s, rel=0.02)
    assert appended(4096) == pytest.approx(MEASURED.small_append_bytes_per_s, rel=0.02)
    sent = rate(total, appending(MIB, total), sending(MIB, total))
    assert sent == pytest.approx(MEASURED.sendfile_bytes_per_s, rel=0.05)


def test_the_machine_reads_and_flushes_as_was_measured() -> None:
    """In line, one page at random, and a flush after a page."""
    host = new_host(machine())
    host.storage.files.preload("old", whole_series(Series("p", 0, 1, 200 * MIB - 10)))

    async def in_line() -> float:
        begin = host.kernel.now_us
        for at in range(0, 100 * MIB, MIB):
            await Read("old", at, MIB)
        return 100 * MIB * 1e6 / (host.kernel.now_us - begin)

    async def at_random() -> float:
        await Idle(1_000_000)  # what is read ahead is there by then
        begin = host.kernel.now_us
        for number in range(50):
            await Read("old", 110 * MIB + (number * 7919 % 20_000) * 4096, 4096)
        return (host.kernel.now_us - begin) / 50

    async def syncs() -> list[int]:
        await CreateFile("log")
        taken = []
        for number in range(3_000):
            await Append("log", whole_series(Series("p", number, 1, 4086)))
            begin = host.kernel.now_us
            await Flush("log")
            taken.append(host.kernel.now_us - begin)
        return sorted(taken)

    (reading,) = run(host, [host.start(host.process(), in_line())])
    (page_us,) = run(host, [host.start(host.process(), at_random())])
    (flushes,) = run(host, [host.start(host.process(), syncs())])
    assert reading == pytest.approx(MEASURED.read_bytes_per_s, rel=0.1)
    assert page_us == pytest.approx(MEASURED.read.median, rel=0.1)
    assert flushes[1_500] == pytest.approx(MEASURED.sync.median, rel=0.05)
    assert flushes[300] == pytest.approx(MEASURED.sync.at(10), rel=0.08)
    assert flushes[2_700] == pytest.approx(MEASURED.sync.at(90), rel=0.08)


@pytest.mark.parametrize("name", ["append_bytes_per_s", "overwrite_bytes_per_s"])
def test_figures_that_contradict_each_other_give_a_machine(name: str) -> None:
    """On a busy machine a long append may take less than a copy; nothing is free even then."""
    for value in (1, 10**12):
        fitted = fit_disk(replace(MEASURED, **{name: value}))
        assert fitted.copy_bytes_per_s > 0
        assert fitted.page_ns >= 0
        assert fitted.write_ns >= 0


# --- files -----------------------------------------------------------------------------


def test_every_figure_can_be_given() -> None:
    """The form of a file knows what a machine has, and nothing else."""
    assert set(DiskSimulationModel.model_fields) == OF_DEVICE | OF_MACHINE


def test_what_is_given_replaces_what_is_usual(tmp_path: Path) -> None:
    """And nothing else changes."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "watchkeeper_profile: 1\ndisk:\n  simulation:\n    flush: {p0: 10, p100: 10}\n"
        "    cores: 3\n    read_us: 7\n"
    )
    found = machine_of_profile(path)
    usual = machine_with({}, "usual")

    assert (found.cores, found.device.read_us) == (3, 7)
    assert set(found.device.flush) == {10}
    assert (found.copy_bytes_per_s, found.device.write_us) == (
        usual.copy_bytes_per_s,
        usual.device.write_us,
    )


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("    reed_us: 7\n", "disk.simulation.reed_us", "did you mean 'read_us'?"),
        ("    dirty_percent: 0\n", "disk.simulation.dirty_percent", "is too small"),
        ("    flush: 900\n", "disk.simulation.flush", "is not a mapping of quantiles"),
        ("    cores: many\n", "disk.simulation.cores", "is not a whole number"),
        ("    cores: 2\n  defaults: [cores]\n", "disk", "gives cores and says"),
        ("    cores: 2\n  defaults: [core]\n", "disk", "'core' among its defaults"),
    ],
)
def test_mistakes_are_reported_with_their_field(
    text: str, field: str, message: str, tmp_path: Path
) -> None:
    """As those of the other part are."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"watchkeeper_profile: 1\ndisk:\n  simulation:\n{text}")
    with pytest.raises(ScenarioError) as raised:
        machine_of_profile(path)
    (problem,) = raised.value.problems
    assert problem.field == field
    assert message in problem.message


def test_either_part_can_be_absent(tmp_path: Path) -> None:
    """A process that needs the part that is absent gets its name, and how to have it."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(ZOOKEEPER)
    new.write_text("watchkeeper_profile: 1\ndisk: {simulation: {cores: 2}}\n")

    assert profile_of(old).latencies.read_us == 90
    assert machine_of_profile(new).cores == 2
    with pytest.raises(ScenarioError, match="has no section `disk`; `watchkeeper calibrate"):
        machine_of_profile(old)
    with pytest.raises(ScenarioError, match="has no section `zookeeper`"):
        profile_of(new)


# --- the command -----------------------------------------------------------------------


def test_the_command_adds_a_disk_to_what_a_file_says(
    tmp_path: Path, tiny: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part of ZooKeeper stays; the disk is shown, and can be simulated."""
    path = tmp_path / "profile.yaml"
    path.write_text(ZOOKEEPER)

    assert run_command(["calibrate", "--disk", str(tmp_path), "--quick", "--out", str(path)]) == 0

    output = capsys.readouterr().out
    assert "4 KiB read at random" in output
    assert "a system call takes" in output
    model = load_profile(path)
    assert model.zookeeper is not None
    assert model.zookeeper.simulation.read_us == 90
    assert model.disk is not None
    assert model.disk.measured is not None
    assert model.disk.measured.folder == str(tmp_path)
    assert "journal_bytes" in model.disk.defaults
    assert machine_of_profile(path).call_ns == model.disk.simulation.call_ns
    again = tmp_path / "again.yaml"
    again.write_text(profile_text(model))
    assert load_profile(again) == model


def test_the_command_speaks_json(
    tmp_path: Path, tiny: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """One value, with the whole profile."""
    path = tmp_path / "profile.yaml"
    command = ["calibrate", "--disk", str(tmp_path), "--quick", "--out", str(path), "--json"]

    assert run_command(command) == 0

    output = json.loads(capsys.readouterr().out)
    assert output["file"] == str(path)
    assert output["profile"]["disk"]["measured"]["file_bytes"] == 2 * MIB
    assert "zookeeper" not in output["profile"]


def test_a_file_that_is_no_profile_is_not_written_over(
    tmp_path: Path, tiny: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be anything."""
    path = tmp_path / "thesis.yaml"
    path.write_text("chapter: 1\n")

    assert run_command(["calibrate", "--disk", str(tmp_path), "--quick", "--out", str(path)]) == 4
    assert "is there already, and no profile" in capsys.readouterr().err
    assert path.read_text() == "chapter: 1\n"


def test_a_folder_that_is_not_there_is_said(
    tmp_path: Path, tiny: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no profile is written."""
    out = tmp_path / "profile.yaml"
    command = ["calibrate", "--disk", str(tmp_path / "none"), "--quick", "--out", str(out)]

    assert run_command(command) == 4
    assert "--disk: there is no folder" in capsys.readouterr().err
    assert not out.exists()
