"""The value of `--zookeeper`: a server to start, or the hosts of a ZooKeeper that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchkeeper.console.extras import needing

if TYPE_CHECKING:
    from watchkeeper.real.zookeepers.implementation import Implementation

JAVA, PYTHON = "java", "python"
STARTED = (JAVA, PYTHON)
"""The words for servers that are started; any other value names hosts."""


def hosts_in(zookeeper: str | None) -> str | None:
    """Return the hosts of a ZooKeeper that runs already; None for one that is started."""
    return None if zookeeper in STARTED else zookeeper


def implementation_of(zookeeper: str | None) -> Implementation:
    """Return which server is started: the one in Python, unless Apache's is named."""
    with needing("a live ZooKeeper"):
        from watchkeeper.real.zookeepers.implementation import Implementation
    return Implementation(zookeeper or PYTHON)


def measured_implementation(zookeeper: str | None) -> Implementation:
    """Return which server is measured or verified: the named one, or Apache's if it is found."""
    with needing("a live ZooKeeper"):
        from watchkeeper.real.zookeepers.implementation import apache_if_found
    return apache_if_found() if zookeeper is None else implementation_of(zookeeper)


def in_words(zookeeper: Implementation | str) -> str:
    """Return which ZooKeeper is used, and how to use Apache's where that could be started."""
    from watchkeeper.real.zookeepers.implementation import Implementation, apache_version

    if not isinstance(zookeeper, Implementation):
        return zookeeper
    version = apache_version()
    if zookeeper is Implementation.JAVA:
        return f"Apache's {version}, in Java"
    advice = f"; --zookeeper java runs on Apache's {version}" if version else ""
    return f"watchkeeper's own, in Python{advice}"
