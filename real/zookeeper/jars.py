"""The jars of Apache ZooKeeper among those that PySpark installs."""

from __future__ import annotations

from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

from watchkeeper.real.errors import EnvironmentProblem

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

NEEDED = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-*.jar",
    "netty-buffer-*.jar",
    "netty-common-*.jar",
    "netty-handler-[0-9]*.jar",
    "netty-transport-[0-9]*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "commons-cli-*.jar",
    "commons-io-*.jar",
)
"""What a server loads to serve, to elect a leader and to write its log."""

ADVICE = "pip install 'watchkeeper[spark]' brings a PySpark that has all of them"


def jar_folder() -> Path:
    """The folder of PySpark's jars, found without importing PySpark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentProblem(
            "PySpark is not installed, and the embedded ZooKeeper runs from its jars; "
            "pip install 'watchkeeper[spark]', or use a ZooKeeper that runs already with "
            "--zookeeper HOSTS"
        )
    return Path(spec.origin).parent / "jars"


def zookeeper_jars(folder: Path | None = None) -> tuple[Path, ...]:
    """The jars that a ZooKeeper server needs; raises EnvironmentProblem if one is missing."""
    place = jar_folder() if folder is None else folder
    names = sorted(path.name for path in place.glob("*.jar"))
    missing = [pattern for pattern in NEEDED if not any(fnmatch(name, pattern) for name in names)]
    if missing:
        raise EnvironmentProblem(
            f"{place} has no jar that matches {', '.join(missing)}, which the embedded "
            f"ZooKeeper needs; {ADVICE}"
        )
    return tuple(
        place / name for name in names if any(fnmatch(name, pattern) for pattern in NEEDED)
    )


def zookeeper_version(jars: tuple[Path, ...]) -> str:
    """The version of ZooKeeper among these jars."""
    main = next(jar for jar in jars if fnmatch(jar.name, NEEDED[0]))
    return main.stem.removeprefix("zookeeper-")
