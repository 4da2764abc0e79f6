"""The judge of lost updates: no process replaces what it does not know.

Controllers, leaders and tools write the same znodes: assignments, states of partitions, requests
of administrators. A write that names the version of the znode replaces what its writer knows. A
write without a version replaces whatever is there, and so its writer has to have read that.

A trace has no path beside the answer to a read. So a process knows every data that a read has
brought it, of whichever znode; and of a batch that a trace cuts, all that was there by then.
Where the writes come from the log of an external server they name no version, and are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

NO_LOST_UPDATES = Property(
    "no lost updates",
    "always",
    "no broker and no tool replaces an assignment, settings, a state or an epoch of another "
    "process, or deletes its request or its `/controller`, without knowing it: it has read it, "
    "or names its version",
    exercise="a write or a deletion of what another process has written",
    is_optional=True,
)
UPDATES: tuple[Property, ...] = (NO_LOST_UPDATES,)

DELETED_BY_MANY = frozenset(
    {paths.CONTROLLER, paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION}
)
"""What one process deletes and another one has written; a topic goes with all that it has."""
SETTINGS = f"{paths.TOPIC_CONFIGS}/"
WRITTEN_BY_MANY = frozenset({paths.CONTROLLER_EPOCH, *DELETED_BY_MANY})
DATA_READS = frozenset({"get", "exists", "pipelined", "multi read"})
"""The operations whose answers have the data of znodes."""


@dataclass(slots=True)
class Content:
    """What a znode holds."""

    data: str
    writer: str
    """The process that wrote it; empty for an operator."""
    seq: int


@dataclass(slots=True)
class Known:
    """What reads have brought a process."""

    data: dict[str, None] = field(default_factory=dict)
    all_until: int = -1
    """The event up to which it may have read everything: an answer that the trace cuts."""

    def has(self, content: Content) -> bool:
        """Whether it may have read this."""
        return content.data in self.data or self.all_until > content.seq


class UpdatesJudge:
    """Judges the writes of all clusters of a run whose brokers elect a controller."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.history = history
        self.evidence = Evidence(UPDATES)
        self.contents: dict[str, dict[str, Content]] = {}
        """Cluster -> path -> what is there."""
        self.known: dict[str, Known] = {}
        self.cluster_of: dict[str, str] = {}
        for cluster in plan.clusters:
            if cluster.controller is not None:
                names = cluster.operators(plan.prefix_of(cluster.name))
                self.contents[cluster.name] = {}
                self.known |= {name: Known() for name in names}
                self.cluster_of |= dict.fromkeys(names, cluster.name)
        self.handlers = {
            EventKind.APPLIED: self._applied,
            EventKind.RESPONSE: self._answered,
            EventKind.SESSION_EXPIRED: self._session_ended,
            EventKind.SESSION_CLOSED: self._session_ended,
        }

    def _contents_of(self, writer: str) -> dict[str, Content] | None:
        name = self.cluster_of.get(writer)
        if name is None and len(self.contents) == 1:
            [name] = self.contents  # an operator's hand, or another program in the only cluster
        return None if name is None else self.contents[name]

    # --- reads -------------------------------------------------------------------------

    def _answered(self, event: Event) -> None:
        known = self.known.get(event.node)
        if known is None or event.detail["op"] not in DATA_READS:
            return
        for data in _data_in(event.detail["answer"]):
            if data is None:
                known.all_until = event.seq
            else:
                known.data[data] = None

    # --- writes ------------------------------------------------------------------------

    def _applied(self, event: Event) -> None:
        writer = self.history.holders.get(event.session, "")
        contents = self._contents_of(writer)
        if contents is None:
            return
        for change in event.detail["did"]:
            path = change[1]
            data = None if change[0] == "deleted" else change[3] or ""
            before = contents.pop(path, None)
            if before is not None and self._may_lose(event, writer, path, before, data):
                self._judge(event, writer, path, before)
            if data is not None and is_shared(path):
                contents[path] = Content(data, writer, event.seq)

    def _may_lose(
        self, event: Event, writer: str, path: str, before: Content, data: str | None
    ) -> bool:
        """Whether a process replaces or deletes what is another one's."""
        if writer not in self.known or writer == before.writer or data == before.data:
            return False
        return data is not None or path in DELETED_BY_MANY

    def _judge(self, event: Event, writer: str, path: str, before: Content) -> None:
        if "purpose" not in event.detail:  # what a live server did, without the request's version
            return
        self.evidence.exercise(NO_LOST_UPDATES)
        if "version" in event.detail or self.known[writer].has(before):
            return
        text = (
            f"{writer} wrote or deleted {path} and had not read what "
            f"{before.writer or 'an operator'} wrote there: {before.data}"
        )
        self.evidence.violate(NO_LOST_UPDATES, event.t_us, "an update that is lost", text)

    def _session_ended(self, event: Event) -> None:
        contents = self._contents_of(self.history.holders.get(event.session, ""))
        if contents is not None:
            for _, path, _ in event.detail["did"]:
                contents.pop(path, None)

    # --- the end -----------------------------------------------------------------------

    def close(self, end_us: int) -> None:
        """The run is over; there is nothing to add."""

    def findings(self) -> Iterator[Finding]:
        """The finding on the property."""
        return self.evidence.findings()


def is_shared(path: str) -> bool:
    """Whether several processes write a znode."""
    return (
        path in WRITTEN_BY_MANY
        or paths.parse_state(path) is not None
        or paths.parse_topic(path) is not None
        or path.startswith(SETTINGS)
    )


def _data_in(answer: Any) -> Iterator[str | None]:
    """Yield the data of each znode in an answer; None where the trace has cut the answer."""
    for part in answer if isinstance(answer, list) else [answer]:
        if isinstance(part, str):
            yield None
        elif isinstance(part, dict) and "data" in part:
            yield part["data"] or ""
