"""The job of a member's process: its program, and its role in the flow of messages."""

from __future__ import annotations

import base64
import pickle
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.actor.program import Program
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.offset_manager.settings import ReplicatedOffsetSettings
from watchkeeper.model.plan.plan import ConsumerFetches, Forwarding, Handling, ProducerPlan
from watchkeeper.model.replication.settings import ReplicationSettings
from watchkeeper.real.results.of_member import DatabaseStore, SegmentStore
from watchkeeper.real.storage.metrics import MeteredStorage


@dataclass(frozen=True)
class BrokerRole:
    """A broker that stores messages in files."""

    broker_id: int
    root: str
    """The folder of its logs."""
    sync_log: str
    """The folder that records which of their bytes are synced, and the broker's metrics."""
    settings: BrokerLogSettings
    storage: type[MeteredStorage]
    logs: type[LogManager]
    deleted: tuple[str, ...] = ()
    """The topics that were deleted while no process ran."""


@dataclass(frozen=True)
class ReplicaRole:
    """A broker that replicates."""

    settings: ReplicationSettings
    offsets: ReplicatedOffsetSettings
    root: str
    """The folder of its logs."""
    sync_log: str
    """The folder that records which of their bytes are synced."""


@dataclass(frozen=True)
class WriterRole:
    """What sends the loads of a timeline to a cluster that replicates."""

    brokers: tuple[str, ...]
    """The addresses that the brokers announce."""


@dataclass(frozen=True)
class ConsumerRole:
    """A consumer of messages."""

    me: Consumer
    variant: Variant
    handling: Handling
    results: str
    """The folder in which results are stored with their positions."""
    store: type[DatabaseStore | SegmentStore]
    """The kind of store for results."""
    balancer: str
    has_own_program: bool
    forwards: Forwarding | None = None
    """Where a mirror sends what it consumes; None for a consumer that is no mirror."""
    target: str | None = None
    """The data plane file of the cluster that a mirror sends to."""
    brokers: tuple[str, ...] = ()
    """The addresses of the brokers of a cluster that replicates."""
    fetches: ConsumerFetches = ConsumerFetches.RECORDS
    """How it fetches from them."""


@dataclass(frozen=True)
class ProducerRole:
    """A producer of messages."""

    plan: ProducerPlan
    life: int
    """The number of processes with this name so far, this one included."""
    balancer: str


@dataclass(frozen=True)
class Job:
    """Everything that a member's process needs to know."""

    node: str
    group: str
    program: Program
    hosts: str
    chroot: str
    session_timeout_ms: int
    trace_file: str
    cluster: str
    begin_ns: int
    about: dict[str, Any]
    fetch_every_s: float = 0
    """Interval of fetches; 0 for a member that does not fetch rates."""
    ends_on_error: bool = False
    port: int = 0
    """The port of a broker; 0 for a member that does not serve."""
    armed: tuple[tuple[str, str], ...] = ()
    """The steps at which to report and wait: (before or after_reply, purpose)."""
    resends_watches: bool = False
    """Whether its client sets its watches again after a reconnection, as Java's does."""
    skew_ms: int = 0
    kazoo: tuple[tuple[str, Any], ...] = ()
    """kazoo's options for access to ZooKeeper."""
    role: BrokerRole | ReplicaRole | ConsumerRole | ProducerRole | WriterRole | None = None
    """The role; None where a log is a rate."""
    shares_process: bool = False
    """Whether other members may run in the process, which then goes on without this one."""


def encoded(job: Job) -> bytes:
    """Encode a job as one line."""
    return base64.b64encode(pickle.dumps(job)) + b"\n"


def decoded(line: bytes | str) -> Job:
    """Decode a job from one line."""
    job: Job = pickle.loads(base64.b64decode(line))
    return job
