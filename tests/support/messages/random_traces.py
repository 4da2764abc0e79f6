"""Stories of messages, drawn at random: what a run may tell of them, and much that none should.

Neither a judge nor a table of events asks whether a story can happen. So these are drawn
without a world: claims come and go, logs are cut, messages are handed on out of order, places
are committed that nobody has reached. What two computations say of them must be the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from model import registry
from model.asks import Partition
from model.delivered import DELIVERY
from model.messages import message_judges
from model.plan import ClusterPlan, GroupPlan, Plan
from model.trace import ENCODER, Header, Row, Trace
from pipeline.analysis.events import EVENTS, Read, events
from pipeline.analysis.handing import order
from pipeline.analysis.messaging import of_messages
from pipeline.analysis.runs import Run, runs_table
from pipeline.analysis.spans import changes
from pipeline.analysis.tables import Tables
from pipeline.analysis.terms import terms
from scenarios import load

PAUSES_US = (0, 0, 1, 1000, 400_000, 3_000_000, 11_000_000)
BYTES = 10
"""What a message takes in a log."""


class Story:
    """One run, told event by event."""

    def __init__(self, plan: Plan, seed: int, events: int) -> None:
        self.plan = plan
        self.chance = Random(seed)
        self.rows: list[Row] = []
        self.now_us = 0
        self.numbers = dict.fromkeys((one.name for one in plan.producers), 0)
        self.on_their_way: list[tuple[str, int, int]] = []
        self.logs: dict[tuple[str, Partition], list[list[Any]]] = {}
        self.places: dict[tuple[str, Partition], int] = {}
        deeds = (
            *(self.sends, self.stores, self.stores, self.hands_on, self.hands_on, self.hands_on),
            *(self.claims, self.fetches, self.commits, self.hosts, self.cuts, self.resets),
        )
        for _ in range(events):
            self.now_us += self.chance.choice(PAUSES_US)
            self.chance.choice(deeds)()
        self.tell("", "run ends", {})

    @property
    def trace(self) -> Trace:
        """What was told."""
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
        """Tell of an event."""
        row = (self.now_us, node, kind, 0, group, topic, partition, 0, detail)
        self.rows.append(row)

    # --- who and where -----------------------------------------------------------------

    def _broker(self) -> tuple[ClusterPlan, str, Partition]:
        """A broker, and one of the two partitions it has."""
        cluster = self.chance.choice(self.plan.clusters)
        broker = self.chance.choice(cluster.brokers)
        topic = self.chance.choice(cluster.topics).name
        index = self.chance.randrange(2)
        return cluster, broker.node, registry.partition_07(topic, broker.broker_id, index)

    def _member(self) -> tuple[GroupPlan, str, Partition]:
        """A member of a group, and a partition that it may read."""
        group = self.chance.choice(self.plan.groups)
        known = [one for cluster, one in self.logs if cluster == group.cluster]
        partition = self.chance.choice(known or [Partition("clicks", "0-0")])
        return group, self.chance.choice(group.consumers).node, partition

    def _zookeeper(self, group: GroupPlan) -> str:
        """The server of a group's cluster."""
        return f"{group.cluster}:zookeeper/0" if len(self.plan.clusters) > 1 else "zookeeper/0"

    # --- what happens ------------------------------------------------------------------

    def sends(self) -> None:
        """A producer gives some messages away, and hears what became of them."""
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
        self.tell(producer.node, "sent", detail, topic=topic)

    def stores(self) -> None:
        """A broker appends some of what was sent; now and then in two lots, or what it has."""
        cluster, node, partition = self._broker()
        log = self.logs.setdefault((cluster.name, partition), [])
        lots = []
        for _ in range(self.chance.choice((0, 1, 1, 1, 2))):
            lot = self._some_sent()
            if lot is not None:
                at = log[-1][4] if log else 0
                log.append([*lot, at, at + BYTES * (lot[2] - lot[1])])
                lots.append(log[-1])
        self._tell_of(node, partition, "stored", {"lots": lots})

    def _some_sent(self) -> tuple[str, int, int] | None:
        """Messages that were sent: the oldest, later ones, or a part of any."""
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
        """A broker opens a log, of which it may have lost the end."""
        cluster, node, partition = self._broker()
        log = self.logs.setdefault((cluster.name, partition), [])
        while log and self.chance.random() < 0.3:
            log.pop()
        end = log[-1][4] if log else 0
        self._tell_of(node, partition, "opened", {"start": 0, "end": end, "clean": False})

    def hosts(self) -> None:
        """A broker begins or ceases to serve a partition."""
        _, node, partition = self._broker()
        does = self.chance.choice(("begins", "begins", "ceases"))
        self._tell_of(node, partition, "hosting", {"does": does})

    def claims(self) -> None:
        """A claim is made, changed, or gone with its session."""
        group, node, partition = self._member()
        path = registry.owner(group.name, partition)
        made = ["created", path, 7, f"{node}-0"]
        gone = ["deleted", path, 7]
        kind, did = self.chance.choice(
            (
                *(("applied", [made]), ("applied", [made]), ("applied", [gone])),
                *(("applied", [gone, made]), ("session expired", [gone])),
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
        self._tell_of(node, partition, "fetching", detail, group.name)

    def hands_on(self) -> None:
        """A member is handed what comes next, or something that comes later or came before."""
        group, node, partition = self._member()
        log = self.logs.get((group.cluster, partition), [])
        place = self.places.get((group.name, partition), 0)
        following = [lot for lot in log if lot[3] >= place] or log
        lot = self.chance.choice((following[0], *log[-3:])) if log else None
        detail = {"lots": [] if lot is None else [lot], "stream": self.chance.choice((0, 0, 1))}
        self._tell_of(node, partition, "consumed", detail, group.name)
        if lot is not None:
            self.places[group.name, partition] = lot[4]

    def resets(self) -> None:
        """A member goes on at the beginning or the end of a log."""
        group, node, partition = self._member()
        log = self.logs.get((group.cluster, partition), [])
        to = self.chance.choice((0, log[-1][4] if log else 0))
        self.places[group.name, partition] = to
        self._tell_of(node, partition, "offset reset", {"to": to, "why": "no offset"}, group.name)

    def commits(self) -> None:
        """A place is committed: mostly one that was reached."""
        group, node, partition = self._member()
        place = self.places.get((group.name, partition), 0)
        odd = ("-1", "--5", "", "a", str(2**63 - 1), str(10**30), str(place + 5))
        data = self.chance.choice(odd) if self.chance.random() < 0.1 else str(place)
        change = ["changed", registry.offset(group.name, partition), 0, data]
        self.tell(self._zookeeper(group), "applied", {"by": node, "did": [change]})

    def _tell_of(
        self, node: str, partition: Partition, kind: str, detail: dict[str, Any], group: str = ""
    ) -> None:
        """Tell of a partition as processes do, or as programs do."""
        name = partition.name
        if self.chance.random() < 0.2:
            name, detail = "", {**detail, "partition": name}
        self.tell(node, kind, detail, group=group, topic=partition.topic, partition=name)


# --- what is said of them --------------------------------------------------------------

Said = tuple[str, int | None]
"""A verdict, and since when it is violated."""


def stories(*names: str, number: int) -> dict[str, Story]:
    """So many of each of these scenarios, short and long ones."""
    plans = {name: load(name).plan("hardened") for name in names}
    return {
        f"{name}-{seed}": Story(plan, seed, 10 + 9 * (seed % 10))
        for name, plan in plans.items()
        for seed in range(number)
    }


def judged(story: Story) -> dict[str, Said]:
    """What judges say of a story, but for what became of its messages in the end."""
    judges = message_judges(story.plan)
    assert judges is not None, "its logs hold messages"
    for event in story.trace:
        for call in judges.calls(event.kind):
            call(event)
    return {
        one.claim.name: (one.verdict.value, one.at_us)
        for one in judges.findings(story.now_us)
        if not one.claim.name.startswith(DELIVERY.name)
    }


class Computed(NamedTuple):
    """What tables say of stories."""

    found: dict[tuple[str, str], Said]
    """Story and property -> what is said."""
    mistaken: dict[str, Said]
    """Story -> what is said of its order, where nobody minds what mirrors bring."""


def computed_of(spark: SparkSession, told: Mapping[str, Story], home: Path) -> Computed:
    """Compute the properties of some stories from one table of their events."""
    table = events(spark, _written(told, home / "events"))
    tables = Tables(spark, home)
    given = [Run(name, "", one.trace.header, plan=one.plan) for name, one in told.items()]
    read = [Read(name, len(one.rows), one.now_us, "", "") for name, one in told.items()]
    runs = tables.keep("runs", runs_table(spark, given, read))
    known = terms(spark, {name: one.plan for name, one in told.items()})
    found = of_messages(runs, table, changes(table), known, tables)
    kept = spark.read.parquet(str(home / "told_of_messages"))
    careless = order(runs, kept, known.mirrored.limit(0)).withColumn("at_us", lit(None))
    return Computed(
        dict(_said(found, told)),
        {name: said for (name, _), said in _said(careless, told)},
    )


def _written(told: Mapping[str, Story], home: Path) -> Path:
    rows = [
        (seq, *row[:8], ENCODER.encode(row[8]).decode(), name)
        for name, story in told.items()
        for seq, row in enumerate(story.rows)
    ]
    columns = dict(zip(EVENTS.fieldNames(), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table({**columns, "seq": pa.array(columns["seq"], pa.int32())})
    home.mkdir()
    pq.write_table(table, home / "part.parquet")
    return home


def _said(found: DataFrame, told: Mapping[str, Story]) -> Iterator[tuple[tuple[str, str], Said]]:
    for one in found.collect():
        at_us = one.at_us if one.seq is None else told[one.run].rows[one.seq][0]
        yield (one.run, one.property), (one.verdict, at_us)
