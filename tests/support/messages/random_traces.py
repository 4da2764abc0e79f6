"""Traces of messages, drawn at random: events of real runs, and many that no run should have.

Neither a judge nor a table of events asks whether a trace can happen. So these are drawn
without a world: claims come and go, logs are cut, messages are handed on out of order, places
are committed that no consumer has reached. What two computations say of them must be the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import ClusterPlan, GroupPlan, Plan
from watchkeeper.model.properties.delivery import DELIVERY
from watchkeeper.model.properties.messages import message_judges
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import ENCODER, Header, Row, Trace
from watchkeeper.pipeline.analysis.engine.api import DataFrame, sql
from watchkeeper.pipeline.analysis.engine.engine import Engine
from watchkeeper.pipeline.analysis.facts.events import EVENTS, Read, events
from watchkeeper.pipeline.analysis.facts.intervals import changes
from watchkeeper.pipeline.analysis.facts.plan_facts import terms
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.messages import of_messages
from watchkeeper.pipeline.analysis.properties.order_and_commits import order
from watchkeeper.pipeline.analysis.runs import Run, runs_table
from watchkeeper.scenarios import load

PAUSES_US = (0, 0, 1, 1000, 400_000, 3_000_000, 11_000_000)
OF_MESSAGES = ("order", "sane commits", "no starvation", "punctual sending")
"""The properties that are judged of such traces."""
BYTES = 10
"""The size of a message in a log."""


class DrawnTrace:
    """One run, written event by event."""

    def __init__(self, plan: Plan, seed: int, events: int) -> None:
        self.plan = plan
        self.chance = Random(seed)
        self.rows: list[Row] = []
        self.now_us = 0
        self.numbers = dict.fromkeys((producer.name for producer in plan.producers), 0)
        self.on_their_way: list[tuple[str, int, int]] = []
        self.logs: dict[tuple[str, Partition], list[list[Any]]] = {}
        self.places: dict[tuple[str, Partition], int] = {}
        actions = (
            *(self.sends, self.stores, self.stores, self.hands_on, self.hands_on, self.hands_on),
            *(self.claims, self.fetches, self.commits, self.hosts, self.cuts, self.resets),
        )
        for _ in range(events):
            self.now_us += self.chance.choice(PAUSES_US)
            self.chance.choice(actions)()
        self.tell("", EventKind.RUN_ENDED, {})

    @property
    def trace(self) -> Trace:
        """The events of the trace."""
        return Trace(Header(self.plan.name, "hardened", "sim", 0), self.rows)

    def tell(
        self,
        node: str,
        kind: str,
        detail: dict[str, Any],
        *,
        group: str = "",
        topic: str = "",
        partition: str = "",
    ) -> None:
        """Write an event."""
        row = (self.now_us, node, kind, 0, group, topic, partition, 0, detail)
        self.rows.append(row)

    # --- who and where -----------------------------------------------------------------

    def _broker(self) -> tuple[ClusterPlan, str, Partition]:
        """A broker, and one of the two partitions it has."""
        cluster = self.chance.choice(self.plan.clusters)
        broker = self.chance.choice(cluster.brokers)
        topic = self.chance.choice(cluster.topics).name
        index = self.chance.randrange(2)
        return cluster, broker.node, paths.partition_07(topic, broker.broker_id, index)

    def _member(self) -> tuple[GroupPlan, str, Partition]:
        """A member of a group, and a partition that it may read."""
        group = self.chance.choice(self.plan.groups)
        known = [log for cluster, log in self.logs if cluster == group.cluster]
        partition = self.chance.choice(known or [Partition("clicks", "0-0")])
        return group, self.chance.choice(group.consumers).node, partition

    def _zookeeper(self, group: GroupPlan) -> str:
        """The server of a group's cluster."""
        return f"{group.cluster}:zookeeper/0" if len(self.plan.clusters) > 1 else "zookeeper/0"

    # --- what happens ------------------------------------------------------------------

    def sends(self) -> None:
        """A producer sends some messages, and receives an outcome."""
        producer = self.chance.choice(self.plan.producers)
        topic = self.chance.choice(self.plan.cluster(producer.cluster).topics).name
        first = self.numbers[producer.name]
        end = self.numbers[producer.name] = first + self.chance.randrange(1, 9)
        outcome = self.chance.choice(("accepted", "accepted", "accepted", "refused", "unknown"))
        detail = {"producer": producer.name, "first": first, "end": end, "outcome": outcome}
        if self.chance.random() < 0.7:
            self.on_their_way.append((producer.name, first, end))
        if self.chance.random() < 0.3:
            self.stores()
        self.tell(producer.node, EventKind.SENT, detail, topic=topic)

    def stores(self) -> None:
        """A broker appends some sent messages, sometimes in two ranges, sometimes stored ones."""
        cluster, node, partition = self._broker()
        log = self.logs.setdefault((cluster.name, partition), [])
        ranges = []
        for _ in range(self.chance.choice((0, 1, 1, 1, 2))):
            message_range = self._some_sent()
            if message_range is not None:
                at = log[-1][4] if log else 0
                log.append(
                    [*message_range, at, at + BYTES * (message_range[2] - message_range[1])]
                )
                ranges.append(log[-1])
        self._tell_of(node, partition, EventKind.STORED, {"ranges": ranges})

    def _some_sent(self) -> tuple[str, int, int] | None:
        """Return a range of sent messages: the oldest, later ones, or a part of any."""
        if not self.on_their_way:
            return None
        at = self.chance.choice((0, 0, 0, self.chance.randrange(len(self.on_their_way))))
        producer, first, end = self.on_their_way[at]
        if self.chance.random() < 0.8:
            self.on_their_way.pop(at)
        if self.chance.random() < 0.8:
            return producer, first, end
        cut = self.chance.randrange(first, end)
        return producer, *self.chance.choice(((first, cut + 1), (cut, end)))

    def cuts(self) -> None:
        """A broker opens a log whose end may be lost."""
        cluster, node, partition = self._broker()
        log = self.logs.setdefault((cluster.name, partition), [])
        while log and self.chance.random() < 0.3:
            log.pop()
        end = log[-1][4] if log else 0
        self._tell_of(
            node, partition, EventKind.LOG_OPENED, {"start": 0, "end": end, "clean": False}
        )

    def hosts(self) -> None:
        """A broker begins or ceases to serve a partition."""
        _, node, partition = self._broker()
        does = self.chance.choice(("begins", "begins", "ceases"))
        self._tell_of(node, partition, EventKind.HOSTING, {"does": does})

    def claims(self) -> None:
        """A claim is made, changed, or gone with its session."""
        group, node, partition = self._member()
        path = paths.owner(group.name, partition)
        made = ["created", path, 7, f"{node}-0"]
        gone = ["deleted", path, 7]
        kind, did = self.chance.choice(
            (
                *(
                    (EventKind.APPLIED, [made]),
                    (EventKind.APPLIED, [made]),
                    (EventKind.APPLIED, [gone]),
                ),
                *((EventKind.APPLIED, [gone, made]), (EventKind.SESSION_EXPIRED, [gone])),
            )
        )
        self.tell(self._zookeeper(group), kind, {"by": node, "did": did})

    def fetches(self) -> None:
        """A member begins to fetch a partition, or ceases to."""
        group, node, partition = self._member()
        place = self.places.get((group.name, partition), 0)
        at = self.chance.choice((-1, 0, place, place))
        does = self.chance.choice(("begins", "begins", "ceases"))
        detail = {"does": does, "at": at, "stream": self.chance.randrange(2)}
        self._tell_of(node, partition, EventKind.FETCHING, detail, group.name)

    def hands_on(self) -> None:
        """A member receives the next messages, or later or earlier ones."""
        group, node, partition = self._member()
        log = self.logs.get((group.cluster, partition), [])
        place = self.places.get((group.name, partition), 0)
        following = [message_range for message_range in log if message_range[3] >= place] or log
        message_range = self.chance.choice((following[0], *log[-3:])) if log else None
        detail = {
            "ranges": [] if message_range is None else [message_range],
            "stream": self.chance.choice((0, 0, 1)),
        }
        self._tell_of(node, partition, EventKind.CONSUMED, detail, group.name)
        if message_range is not None:
            self.places[group.name, partition] = message_range[4]

    def resets(self) -> None:
        """A member resets its position to the beginning or the end of a log."""
        group, node, partition = self._member()
        log = self.logs.get((group.cluster, partition), [])
        to = self.chance.choice((0, log[-1][4] if log else 0))
        self.places[group.name, partition] = to
        self._tell_of(
            node, partition, EventKind.OFFSET_RESET, {"to": to, "why": "no offset"}, group.name
        )

    def commits(self) -> None:
        """A position is committed: mostly one that was reached."""
        group, node, partition = self._member()
        place = self.places.get((group.name, partition), 0)
        odd = ("-1", "--5", "", "a", str(2**63 - 1), str(10**30), str(place + 5))
        data = self.chance.choice(odd) if self.chance.random() < 0.1 else str(place)
        change = ["changed", paths.offset(group.name, partition), 0, data]
        self.tell(self._zookeeper(group), EventKind.APPLIED, {"by": node, "did": [change]})

    def _tell_of(
        self, node: str, partition: Partition, kind: str, detail: dict[str, Any], group: str = ""
    ) -> None:
        """Write an event of a partition as processes do, or as programs do."""
        name = partition.name
        if self.chance.random() < 0.2:
            name, detail = "", {**detail, "partition": name}
        self.tell(node, kind, detail, group=group, topic=partition.topic, partition=name)


# --- what is said of them --------------------------------------------------------------

Judgement = tuple[str, int | None]
"""A verdict, and the time of the violation."""


def drawn_traces(*names: str, number: int) -> dict[str, DrawnTrace]:
    """Return a number of traces of each scenario, short and long ones."""
    plans = {name: load(name).plan("hardened") for name in names}
    return {
        f"{name}-{seed}": DrawnTrace(plan, seed, 10 + 9 * (seed % 10))
        for name, plan in plans.items()
        for seed in range(number)
    }


def judged(drawn: DrawnTrace) -> dict[str, Judgement]:
    """What judges say of a drawn trace, but for what became of its messages in the end."""
    judges = message_judges(drawn.plan)
    assert judges is not None, "its logs hold messages"
    for event in drawn.trace:
        for call in judges.calls(event.kind):
            call(event)
    return {
        finding.claim.name: (finding.verdict.value, finding.at_us)
        for finding in judges.findings(drawn.now_us)
        if not finding.claim.name.startswith(DELIVERY.name)
    }


class Computed(NamedTuple):
    """What tables say of drawn traces."""

    found: dict[tuple[str, str], Judgement]
    """Trace and property -> what is said."""
    mistaken: dict[str, Judgement]
    """Trace -> what is said of its order, without the order of what mirrors bring."""


def computed_of(engine: Engine, traces: Mapping[str, DrawnTrace], home: Path) -> Computed:
    """Compute the properties of some drawn traces from one table of their events."""
    table = events(engine, _written(traces, home / "events"))
    tables = Tables(engine, home)
    given = [Run(name, "", drawn.trace.header, plan=drawn.plan) for name, drawn in traces.items()]
    read = [Read(name, len(drawn.rows), drawn.now_us, "", "") for name, drawn in traces.items()]
    runs = tables.keep("runs", runs_table(engine, given, read))
    known = terms(engine, {name: drawn.plan for name, drawn in traces.items()})
    found = of_messages(runs, table, changes(table), known, tables)
    kept = engine.read(home / "message_events")
    careless = order(runs, kept, known.mirrored.limit(0)).withColumn("at_us", sql.lit(None))
    return Computed(
        dict(_said(found, traces)),
        {name: judgement for (name, _), judgement in _said(careless, traces)},
    )


def _written(traces: Mapping[str, DrawnTrace], home: Path) -> Path:
    rows = [
        (seq, *row[:8], ENCODER.encode(row[8]).decode(), name)
        for name, drawn in traces.items()
        for seq, row in enumerate(drawn.rows)
    ]
    columns = dict(zip(EVENTS.names, map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table({**columns, "seq": pa.array(columns["seq"], pa.int32())})
    home.mkdir()
    pq.write_table(table, home / "part.parquet")
    return home


def _said(
    found: DataFrame, traces: Mapping[str, DrawnTrace]
) -> Iterator[tuple[tuple[str, str], Judgement]]:
    for finding in found.collect():
        at_us = finding.at_us if finding.seq is None else traces[finding.run].rows[finding.seq][0]
        yield (finding.run, finding.property), (finding.verdict, at_us)
