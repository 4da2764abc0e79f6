"""The choice between Apache's server in Java and the one in Python of this project.

A run starts the one in Python, which needs nothing that is not installed and serves within a
tenth of a second. What measures or verifies a server starts Apache's if it is found.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.python_zookeeper.process_ensemble import ProcessEnsemble
from watchkeeper.real.zookeeper.ensemble import Ensemble as ApacheEnsemble
from watchkeeper.real.zookeeper.jars import zookeeper_jars, zookeeper_version
from watchkeeper.real.zookeeper.java import find_java
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.real.zookeepers.ensemble import Ensemble, ServerFaults


class Implementation(StrEnum):
    """A ZooKeeper that can be started, by the word for it in options."""

    JAVA = "java"
    PYTHON = "python"


def apache_version() -> str | None:
    """The version of Apache's server that can be started here; None if none can."""
    try:
        find_java()
        return zookeeper_version(zookeeper_jars())
    except EnvironmentProblem:
        return None


def apache_if_found() -> Implementation:
    """The server that measurements and verifications are about: Apache's, if it is found."""
    return Implementation.PYTHON if apache_version() is None else Implementation.JAVA


def ensemble_of(
    implementation: Implementation,
    servers: int = 1,
    *,
    settings: Settings | None = None,
    name: str = "zookeeper",
    inside: Path | None = None,
    has_record: bool = False,
) -> Ensemble:
    """Prepare an ensemble of this implementation whose servers are down.

    `inside` is a folder for its data, which is removed if this process is killed. What has been
    committed (`committed_by`) Apache's servers always keep, the one in Python if `has_record`.

    Raises EnvironmentProblem, for Apache's, if Java or its jars are missing.
    """
    settings = settings or Settings()
    if implementation is Implementation.JAVA:
        return ApacheEnsemble(servers, settings=settings, name=name, inside=inside)
    return ProcessEnsemble(
        servers,
        settings=python_settings(settings),
        name=name,
        has_record=has_record,
        inside=inside,
    )


def faults_of(ensemble: Ensemble) -> ServerFaults | None:
    """The faults of what passes between its servers; None for Apache's, which nothing reaches."""
    return ensemble if isinstance(ensemble, ProcessEnsemble) else None


def python_settings(settings: Settings) -> EnsembleSettings:
    """The settings of the one in Python that correspond to those of Apache's."""
    return EnsembleSettings(
        tick_ms=settings.tick_ms,
        min_session_ms=settings.min_session_ms,
        max_session_ms=settings.max_session_ms,
        sync_ticks=settings.sync_ticks,
        connections_per_address=0,  # every member comes from this machine
        container_check_ms=settings.container_check_ms,
        extended_types=settings.has_ttls,
    )
