"""The one place that starts Spark.

A session is quiet, listens on the loopback device if its cluster is on this machine, serves no
page, takes a quarter of the memory, and runs its workers with this Python. If it cannot start, it
says so in a sentence, within a bounded time.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.timeouts import Made, what_failed, within
from watchkeeper.pipeline.workers import await_calm, await_workers, ship

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
HERE = frozenset({"localhost", LOOPBACK, "::1"})
GIB = 1 << 30
PATIENCE_S = 120.0
"""The time within which Spark has to start, and a cluster to accept the session."""
CORE_S = 60.0
"""The time within which a cluster has to provide a first core."""
KNOCK_S = 5.0
"""The time within which a master has to accept a connection."""

_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_STANDALONE = re.compile(r"spark://([^/,]+:\d+)(,[^/,]+:\d+)*")
_ELSEWHERE = re.compile(r"yarn|k8s://.+")

WorksIn = Literal["python", "jvm"]
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""For a JVM that only distributes work: it starts in half the time."""

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which session is wanted."""

    master: str
    name: str
    scratch: Path
    """A folder for temporary files; it is removed at the end."""
    works_in: WorksIn
    """Whether Python does the work, and the JVM only distributes it."""
    cores: int | None = None
    """The most cores of a cluster; None for all that it provides."""
    patience_s: float = PATIENCE_S
    core_s: float = CORE_S
    libraries: tuple[str, ...] = ()
    """What the workers import besides what every job needs."""
    keeps_open: tuple[int, ...] = ()
    """Files that its JVM holds open, too, until it has ended: a lock ends no sooner."""

    @property
    def is_local(self) -> bool:
        """Whether the workers are processes of this machine that Spark starts itself."""
        return _LOCAL.fullmatch(self.master) is not None

    @property
    def is_here(self) -> bool:
        """Whether everything runs on this machine."""
        return self.is_local or all(host in HERE for host, _ in self.addresses)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where the masters of a standalone cluster are."""
        if not _STANDALONE.fullmatch(self.master):
            return []
        found = self.master.removeprefix("spark://").split(",")
        return [
            (address.rpartition(":")[0], int(address.rpartition(":")[2])) for address in found
        ]


@contextmanager
def session(wanted: Wanted) -> Iterator[SparkSession]:
    """A session of Spark whose workers can import this package.

    A session that exists in this process is used, and left running.
    """
    _check(wanted)
    running = _running()
    if running is not None:
        ship(running.sparkContext, wanted.scratch)
        yield running
        return
    wanted.scratch.mkdir(parents=True, exist_ok=True)
    path = list(sys.path)
    try:
        with _machine(wanted) as gateway:
            started = _bounded(wanted, lambda: _start(wanted, gateway))
            try:
                context = started.sparkContext
                ship(context, wanted.scratch)
                await_workers(context, wanted.master, wanted.core_s, wanted.libraries)
                if not wanted.is_local:
                    await_calm(lambda: context.defaultParallelism)
                yield started
            finally:
                started.stop()
    finally:
        sys.path[:] = path  # Spark puts files for workers there
        shutil.rmtree(wanted.scratch, ignore_errors=True)


# --- what has to be there --------------------------------------------------------------


def _check(wanted: Wanted) -> None:
    """Check what can be checked before Spark is started."""
    if find_spec("pyspark") is None:
        raise PipelineProblem(
            "PySpark is not installed; pip install 'watchkeeper[spark]', or choose another "
            "runner with --runner pool"
        )
    if wanted.master.startswith("sc://"):
        raise PipelineProblem(
            f"{wanted.master} is a server of Spark Connect, which cannot run this; expected a "
            "master: local[2], spark://HOST:PORT, yarn or k8s://..."
        )
    if not any(form.fullmatch(wanted.master) for form in (_LOCAL, _STANDALONE, _ELSEWHERE)):
        raise PipelineProblem(
            f"{wanted.master!r} is not a master of Spark; expected local[2], spark://HOST:PORT, "
            "yarn or k8s://..."
        )
    if wanted.addresses and not any(map(_answers, wanted.addresses)):
        raise PipelineProblem(
            f"nothing answers at {wanted.master}; start a master there, or name another with "
            "--master"
        )


def _answers(address: tuple[str, int]) -> bool:
    """Whether a server accepts connections at an address."""
    try:
        with socket.create_connection(address, timeout=KNOCK_S):
            return True
    except OSError:
        return False


def _running() -> SparkSession | None:
    """The session that runs in this process already."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # the active session is known to one thread alone
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.builder.getOrCreate()


# --- starting --------------------------------------------------------------------------


@contextmanager
def _machine(wanted: Wanted) -> Iterator[Any]:
    """The JVM that Spark runs in, which would otherwise go on until this process ends."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if wanted.is_local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    with (wanted.scratch / "output.log").open("wb") as output:
        how = {"stdout": output, "stderr": output, "pass_fds": wanted.keeps_open}
        gateway: Any = _bounded(wanted, lambda: launch_gateway(_conf(wanted), how))  # type: ignore[no-untyped-call]
    try:
        yield gateway
    finally:
        SparkContext._gateway = SparkContext._jvm = None
        with suppress(Exception):  # it may have gone by itself
            gateway.shutdown()
        if gateway.proc is not None:
            gateway.proc.stdin.close()
            gateway.proc.kill()
            gateway.proc.wait()


def _start(wanted: Wanted, gateway: Any) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession(SparkContext(conf=_conf(wanted), gateway=gateway))


def _bounded(wanted: Wanted, start: Callable[[], Made]) -> Made:
    """Start Spark; PipelineProblem if it does not start, or not in time."""
    try:
        return within(
            wanted.patience_s,
            start,
            f"Spark did not start with the master {wanted.master} within "
            f"{wanted.patience_s:.0f} s; see whether that is a master of the same version of "
            "Spark, or name another with --master",
        )
    except PipelineProblem:
        raise
    except Exception as error:
        raise PipelineProblem(
            f"Spark did not start with the master {wanted.master} ({what_failed(str(error))}); "
            "it needs Java 17 or later, and a master of its own version"
        ) from None


def _conf(wanted: Wanted) -> SparkConf:
    from pyspark import SparkConf

    conf = SparkConf(loadDefaults=False)
    for key, value in _settings(wanted).items():
        conf.set(key, value)
    return conf


def _settings(wanted: Wanted) -> dict[str, str]:
    """The settings of Spark."""
    logging = wanted.scratch.resolve() / "log4j2.properties"
    logging.write_text(_LOGGING.format(log=wanted.scratch.resolve() / "spark.log"))
    options = [f"-Dlog4j2.configurationFile={logging.as_uri()}"]
    if wanted.works_in == "python":
        options.append(LIGHT)
    found = {
        "spark.master": wanted.master,
        "spark.app.name": wanted.name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": f"{_memory(wanted.works_in) // (1 << 20)}m",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.local.dir": str(wanted.scratch.resolve()),
        "spark.sql.warehouse.dir": (wanted.scratch.resolve() / "warehouse").as_uri(),
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.executorEnv.PYTHONSAFEPATH": "1",  # a folder `model` where they run is not ours
    }
    if wanted.works_in == "python":
        found |= {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": LIGHT}
    if wanted.is_here:
        found |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if wanted.cores is not None and not wanted.is_local:
        found["spark.cores.max"] = str(wanted.cores)
    return found


def _memory(works_in: WorksIn) -> int:
    """A quarter of this machine's memory, within bounds."""
    if works_in == "python":
        return GIB
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(installed // 4, GIB), 8 * GIB)
