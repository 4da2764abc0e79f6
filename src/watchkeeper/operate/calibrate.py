"""The command `calibrate`: measure a ZooKeeper or a disk, and write and show what was found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watchkeeper.api.profile import latencies, profile_model
from watchkeeper.console.credentials import NONE, Credentials
from watchkeeper.console.exit import UNKNOWN, USAGE, Stop, cannot_write, print_json
from watchkeeper.console.extras import needing
from watchkeeper.console.progress import ProgressLine
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.console.zookeeper import JAVA, PYTHON, measured_implementation
from watchkeeper.model.calibration.latency import Distribution, Measured, NoMeasurement
from watchkeeper.model.calibration.probe_program import QUICK, THOROUGH, Sizes
from watchkeeper.operate import calibrate_disk
from watchkeeper.operate.audit import audit
from watchkeeper.operate.disk_profile import together
from watchkeeper.scenarios.profiles.profile import (
    VERSION,
    ProfileModel,
    SimulationModel,
    load_profile,
    save_profile,
)
from watchkeeper.scenarios.profiles.quantiles import quantile_name
from watchkeeper.scenarios.text.errors import ScenarioError
from watchkeeper.sim.calibration.fit_latency import fit

if TYPE_CHECKING:
    from watchkeeper.real.calibration.zookeeper import Target
    from watchkeeper.real.zookeepers.implementation import Implementation

TICK_MS = 500
"""Of a ZooKeeper that is started, as scenarios have it."""
WHERE = {JAVA: "embedded", PYTHON: "embedded, in Python"}
"""Word for a ZooKeeper that is started -> what a profile calls its place."""
SHOWN = (0, 10, 50, 90, 98, 99.9, 100)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The measurements, and the file made of them."""

    measured: Measured
    profile: ProfileModel

    @property
    def simulation(self) -> SimulationModel:
        """The latencies that were found."""
        assert self.profile.zookeeper is not None, "a calibration is of ZooKeeper"
        return self.profile.zookeeper.simulation

    @property
    def digest(self) -> str:
        """Return the digest of the latencies."""
        return latencies(self.simulation).digest


def run(
    hosts: str | None,
    *,
    servers: str,
    zookeeper: str | None,
    disk: Path | None,
    out: Path,
    quick: bool,
    credentials: Credentials,
    as_json: bool,
) -> None:
    """Measure, write the file, and print what was measured.

    With a disk, ZooKeeper is measured only where hosts are named. What the file held before
    of anything else stays in it.
    """
    INTERRUPTS.raise_from_now_on()
    if hosts is not None and zookeeper is not None:
        raise Stop(USAGE, f"{hosts} runs already, so --zookeeper {zookeeper} would start another")
    if not out.parent.is_dir():
        raise Stop(USAGE, f"--out {out}: there is no folder {out.parent}; make it first")
    before = _profile_before(out)
    profile = ProfileModel(watchkeeper_profile=VERSION, zookeeper=None, disk=None, codecs=None)
    shows: list[Callable[[], None]] = []
    output: dict[str, object] = {"file": str(out)}
    if disk is None or hosts is not None:
        sizes = QUICK if quick else THOROUGH
        done = calibrated(hosts, int(servers), sizes, credentials, zookeeper=zookeeper)
        profile = done.profile
        output["digest"] = done.digest
        shows.append(partial(show, done, out))
    if disk is not None:
        with ProgressLine() as progress:
            found = calibrate_disk.measured_disk(disk, quick=quick, tell=progress.say)
        profile = together(calibrate_disk.disk_profile(found, disk), profile)
        shows.append(partial(calibrate_disk.show_disk, found, disk, out))
    profile = together(profile, before)
    try:
        save_profile(profile, out)
    except OSError as error:
        raise cannot_write(out, error) from None
    if as_json:
        dumped = profile.model_dump(mode="json", exclude_none=True)
        print_json({**output, "profile": dumped})
        return
    for show_part in shows:
        show_part()


def _profile_before(out: Path) -> ProfileModel | None:
    """Return the contents of an existing profile; raise Stop for any other file."""
    if not out.exists():
        return None
    try:
        return load_profile(out)
    except ScenarioError as error:
        raise Stop(
            USAGE, f"--out {out} is there already, and no profile: {error}; name another file"
        ) from None


def calibrated(
    hosts: str | None,
    servers: int,
    sizes: Sizes,
    credentials: Credentials = NONE,
    *,
    zookeeper: str | None = None,
) -> Calibration:
    """Measure a ZooKeeper, one that is started if no hosts are named; raise Stop on failure."""
    try:
        if hosts is not None:
            return _of_hosts(hosts, sizes, credentials)
        return _of_started(measured_implementation(zookeeper), servers, sizes)
    except NoMeasurement as error:
        raise Stop(UNKNOWN, str(error)) from None


def _of_started(started: Implementation, servers: int, sizes: Sizes) -> Calibration:
    from watchkeeper.real.errors import EnvironmentProblem
    from watchkeeper.real.zookeeper.settings import Settings
    from watchkeeper.real.zookeepers.implementation import ensemble_of

    try:
        settings = Settings(tick_ms=TICK_MS)
        with ensemble_of(started, servers, settings=settings) as ensemble:
            place = _place(ensemble.hosts, {}, TICK_MS, knows_phase=True)
            request = audit.request(ensemble.hosts, None)
            return _measure(place, request, sizes, WHERE[started], ensemble.version)
    except EnvironmentProblem as problem:
        raise Stop(USAGE, str(problem)) from None


def _of_hosts(hosts: str, sizes: Sizes, credentials: Credentials) -> Calibration:
    request = audit.request(hosts, None, credentials=credentials)
    options = dict(credentials.access(hosts).options)
    place = _place(hosts, options, None, knows_phase=False)
    return _measure(place, request, sizes, hosts, "")


def _place(
    hosts: str, options: dict[str, Any], tick_ms: int | None, *, knows_phase: bool
) -> Target:
    with needing("a calibration"):
        from watchkeeper.real.calibration.zookeeper import Target
        from watchkeeper.real.embed.member import hosts_and_chroot
    try:
        addresses, chroot = hosts_and_chroot(hosts)
    except ValueError as error:
        raise Stop(USAGE, str(error)) from None
    return Target(tuple(addresses.split(",")), chroot, options, tick_ms, knows_phase)


def _measure(
    place: Target, request: audit.Request, sizes: Sizes, where: str, version: str
) -> Calibration:
    from watchkeeper.real.calibration.zookeeper import calibrate, version_of

    warnings.filterwarnings("ignore", "No chroot path exists")  # an error says it, in a sentence
    with ProgressLine() as progress, audit.reader(request) as opened:
        known = version or version_of(opened.client)
        measured = calibrate(place, opened.client, sizes, progress.say)
        progress.say("finding the latencies")
        fitted = fit(measured)
    return Calibration(measured, profile_model(measured, fitted, where, known))


# --- for people ------------------------------------------------------------------------


def show(done: Calibration, out: Path) -> None:
    """Print the measurements and the profile."""
    from watchkeeper.api.tables import console, plain_table, show_table

    to = console()
    measured = done.measured
    section = done.profile.zookeeper
    assert section is not None, "it is a profile of ZooKeeper"
    assert section.measured is not None, "it has just been measured"
    servers = "1 server" if measured.servers == 1 else f"{measured.servers} servers"
    to.print(
        f"ZooKeeper {section.measured.version}, {section.measured.where}, {servers}, tick "
        f"{measured.tick_us // 1000} ms; times in milliseconds",
        soft_wrap=True,
    )
    table = plain_table("", "times", *(quantile_name(level) for level in SHOWN))
    for name, distribution in _rows(measured):
        table.add_row(
            name,
            str(distribution.number),
            *(f"{distribution.at(level) / 1000:.2f}" for level in SHOWN),
        )
    show_table(table, to)
    rates = plain_table("many at once", "operations a second")
    for name, per_second in throughput(measured).items():
        rates.add_row(name, f"{per_second:,}")
    to.print()
    show_table(rates, to)
    to.print()
    to.print(
        f"simulated as a read of {done.simulation.read_us} us at the server, a write of "
        f"{done.simulation.write_us} us, {done.simulation.fire_us} us for each watch that "
        f"fires; not measured, and as ever: {', '.join(section.defaults)}",
        soft_wrap=True,
    )
    to.print(f"profile {out}, digest {done.digest}", soft_wrap=True)


def _rows(measured: Measured) -> Iterator[tuple[str, Distribution]]:
    yield from measured.round_trips.items()
    yield "watch, after the answer", measured.watch
    yield "watch, after asking", measured.write_to_watch
    yield "expiry, after the timeout", measured.expiry
    yield "expiry, after the tick", measured.after_tick


def throughput(measured: Measured) -> dict[str, int]:
    """Kind of batch -> operations a second, by the median of the batches."""
    return {
        name: size * 1_000_000 // max(measured.batches[name].median, 1)
        for name, size in batch_sizes(measured).items()
    }


def batch_sizes(measured: Measured) -> dict[str, int]:
    """Kind of batch -> how many operations it holds."""
    multis = [name for name in measured.batches if name.startswith("multi of ")]
    sizes = {name: int(name.removeprefix("multi of ")) for name in multis}
    return {
        "pipelined read": measured.in_flight,
        "pipelined write": measured.in_flight,
        **sizes,
    }
