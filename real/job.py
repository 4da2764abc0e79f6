"""What a process of a live run is told: its program, and what it has to do with messages."""

from __future__ import annotations

import base64
import pickle
from dataclasses import dataclass
from typing import Any

from model.log.logs import Logs
from model.log.settings import BrokerLogSettings
from model.member import Consumer
from model.plan import Forwarding, Handling, ProducerPlan
from model.program import Program
from model.variants import Variant
from real.gauges import GaugedStorage
from real.member_results import InDatabase, InSegments


@dataclass(frozen=True)
class Stores:
    """A broker that stores messages in files."""

    broker_id: int
    root: str
    """The folder of its logs."""
    diary: str
    """The folder in which is taken down what of them is on the disk, and how it stands."""
    settings: BrokerLogSettings
    storage: type[GaugedStorage]
    logs: type[Logs]


@dataclass(frozen=True)
class Consumes:
    """A consumer that is handed messages."""

    me: Consumer
    variant: Variant
    handling: Handling
    results: str
    """The folder in which results are stored with their places."""
    store: type[InDatabase | InSegments]
    """In what."""
    balancer: str
    has_own_program: bool
    forwards: Forwarding | None = None
    """Where it sends what it is handed, if it is a mirror's."""
    target: str | None = None
    """The file of the cluster that it sends to."""


@dataclass(frozen=True)
class Sends:
    """A producer."""

    plan: ProducerPlan
    life: int
    """How many processes there have been of this name, this one included."""
    balancer: str


@dataclass(frozen=True)
class Job:
    """What a member's process is to do."""

    node: str
    group: str
    program: Program
    hosts: str
    chroot: str
    session_timeout_ms: int
    diary: str
    cluster: str
    begin_ns: int
    about: dict[str, Any]
    fetch_every_s: float = 0
    """0 for whoever fetches nothing, or is handed messages."""
    ends_on_error: bool = False
    port: int = 0
    """Where a broker listens; 0 for whoever serves nothing."""
    armed: tuple[tuple[str, str], ...] = ()
    """(before or after, purpose) of the steps at which to report and wait."""
    skew_ms: int = 0
    kazoo: tuple[tuple[str, Any], ...] = ()
    """What kazoo needs to be let in."""
    part: Stores | Consumes | Sends | None = None
    """What it has to do with messages; None where logs hold none."""


def encoded(job: Job) -> bytes:
    """A job as a line."""
    return base64.b64encode(pickle.dumps(job)) + b"\n"


def decoded(line: bytes) -> Job:
    """The job in a line."""
    job: Job = pickle.loads(base64.b64decode(line))
    return job
