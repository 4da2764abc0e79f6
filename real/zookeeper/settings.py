"""The settings of the servers of an embedded ZooKeeper, and their configuration files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from watchkeeper.real.ports import HOST
from watchkeeper.real.zookeeper.jars import MAIN_CLASS
from watchkeeper.real.zookeeper.java import FAST

WORDS = "ruok, srvr, mntr, conf, cons, wchs, dump"
"""The four-letter words that a server answers."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one embedded ZooKeeper."""

    tick_ms: int = 500
    min_session_ms: int | None = None
    """The shortest session timeout; None for 2 ticks."""
    max_session_ms: int | None = None
    """The longest session timeout; None for 20 ticks."""
    init_ticks: int = 10
    """How long a follower may take to connect to the leader and to catch up."""
    sync_ticks: int = 4
    """How long a follower and the leader may be silent before they give each other up."""
    heap_mb: int = 256
    has_ttls: bool = False
    """Whether a znode may be created with a TTL."""
    container_check_ms: int = 60_000
    """How often the leader looks for containers and TTLs that are over."""

    def __post_init__(self) -> None:
        shortest, longest = self.session_bounds_ms
        if min(self.tick_ms, self.init_ticks, self.sync_ticks, self.heap_mb) < 1:
            raise ValueError(f"ticks and memory are positive numbers, but here are {self}")
        if not 0 < shortest <= longest:
            raise ValueError(
                f"the shortest session timeout, {shortest} ms, must be positive and no longer "
                f"than the longest, {longest} ms"
            )

    @property
    def session_bounds_ms(self) -> tuple[int, int]:
        """The shortest and the longest session timeout."""
        shortest = 2 * self.tick_ms if self.min_session_ms is None else self.min_session_ms
        longest = 20 * self.tick_ms if self.max_session_ms is None else self.max_session_ms
        return shortest, longest


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that one server listens on."""

    client: int
    quorum: int = 0
    election: int = 0

    @property
    def by_use(self) -> dict[str, int]:
        """Use -> port; without the quorum ports of a single server."""
        uses = {
            "ZooKeeper's client port": self.client,
            "its quorum port": self.quorum,
            "its election port": self.election,
        }
        return {use: port for use, port in uses.items() if port}


LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


def write_files(folder: Path, settings: Settings, number: int, ports: tuple[Ports, ...]) -> None:
    """Write the files that server `number` (from 1) reads at its start."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    (data / "myid").write_text(f"{number}\n")
    (folder / "log4j2.properties").write_text(LOGGING)
    shortest, longest = settings.session_bounds_ms
    lines = [
        f"tickTime={settings.tick_ms}",
        f"minSessionTimeout={shortest}",
        f"maxSessionTimeout={longest}",
        f"initLimit={settings.init_ticks}",
        f"syncLimit={settings.sync_ticks}",
        f"dataDir={data.as_posix()}",
        f"clientPort={ports[number - 1].client}",
        f"clientPortAddress={HOST}",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        f"4lw.commands.whitelist={WORDS}",
    ]
    if len(ports) > 1:
        lines += [
            f"server.{number}={HOST}:{place.quorum}:{place.election}"
            for number, place in enumerate(ports, 1)
        ]
    (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")


ONE_THREAD = ("-Dzookeeper.nio.numSelectorThreads=1", "-Dzookeeper.nio.numWorkerThreads=0")
"""One thread reads and writes for all clients: for the few clients of one machine, not passing
requests between threads saves a quarter of the work.
"""


def command(java: Path, jars: tuple[Path, ...], folder: Path, settings: Settings) -> list[str]:
    """The command that runs a server whose files are in this folder."""
    return [
        str(java),
        *FAST,
        f"-Xmx{settings.heap_mb}m",
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={folder / 'crash.log'}",
        f"-Djava.io.tmpdir={folder}",
        "-Djava.net.preferIPv4Stack=true",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        "-Dlog4j2.disableJmx=true",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.admin.enableServer=false",
        "-Dzookeeper.preAllocSize=4096",
        f"-Dzookeeper.extendedTypesEnabled={str(settings.has_ttls).lower()}",
        f"-Dznode.container.checkIntervalMs={settings.container_check_ms}",
        *ONE_THREAD,
        "-cp",
        ":".join(map(str, jars)),
        MAIN_CLASS,
        str(folder / "zoo.cfg"),
    ]
