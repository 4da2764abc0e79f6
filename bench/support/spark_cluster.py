"""A standalone cluster of Spark on this machine: a master and workers, on the loopback device.

Each of them is a process of its own, as on a cluster, with the jars that PySpark brings
along. They write into a folder that is removed, and are ended by their ids.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

HOST = "127.0.0.1"
PATIENCE_S = 60.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
ADDRESS = re.compile(r"spark://127\.0\.0\.1:\d+")
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
JOINED = "Successfully registered with master"


class Cluster:
    """A master, and workers that are added to it."""

    def __init__(self, folder: Path, open_: ExitStack) -> None:
        self.folder = folder
        self._open = open_
        self.master = self._begin("master", MASTER, ["--port", "0", "--webui-port", "0"], ADDRESS)

    def add(self, workers: int, *, cores: int = 1, memory: str = "1g") -> None:
        """Add workers, and wait until the master has taken them in."""
        for number in range(workers):
            name = f"worker-{number}"
            size = ["--cores", str(cores), "--memory", memory]
            place = ["--port", "0", "--webui-port", "0", "--work-dir", str(self.folder / name)]
            self._begin(name, WORKER, [*size, *place, self.master], re.compile(JOINED))

    def _begin(self, name: str, main: str, arguments: list[str], sign: re.Pattern[str]) -> str:
        """Start a process, and wait until it has written a sign into its log."""
        spec = find_spec("pyspark")
        assert spec is not None, "PySpark is installed"
        home = Path(spec.origin or "").parent
        log = self.folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), main, "--host", HOST, *arguments]
        environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "SPARK_HOME": str(home)}
        environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": LIGHT}
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=self.folder, env=environment
            )
        self._open.callback(_end, process)
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends and process.poll() is None:
            found = sign.search(log.read_text(errors="replace"))
            if found is not None:
                return found[0]
            time.sleep(0.05)
        raise RuntimeError(f"{name} did not start: {log.read_text(errors='replace')[-500:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def cluster(workers: int = 2) -> Iterator[Cluster]:
    """A cluster of so many workers, each with one core."""
    with tempfile.TemporaryDirectory(prefix="watchkeeper-spark-") as folder, ExitStack() as open_:
        made = Cluster(Path(folder), open_)
        made.add(workers)
        yield made
