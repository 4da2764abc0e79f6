"""The versions of the protocol, as one table.

A variant is a row of settled questions. The code of the protocol asks the row; it never
asks for a variant by name. The design pages leave some questions open and disagree on
others; each row answers all of them.

  documented       the design pages to the letter, shares rounded down
  documented_ceil  the same with shares rounded up
  kafka_07         Kafka 0.7.2 as shipped
  kafka_08         Kafka 0.8.2.2 as shipped
  hardened         what we would ship today
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from model.assignment import Assignor
from model.registry import BrokerForm, Layout
from model.settings import Release

Step = Literal[
    "read self",
    "read brokers",
    "fence",
    "2 read partitions",
    "3 read members",
    "2-3 look",
    "4-7 assign",
    "stop all",
    "stop lost",
    "commit",
    "8 release all",
    "8 release lost",
    "8 release by name",
    "read offsets",
    "9 claim one by one",
    "9 claim until released",
    "9 claim what is free",
    "9 claim what was freed",
    "start",
]
"""The steps an attempt is made of. The numbers are those of the design pages."""

Flaw = Literal[
    "the last claim decides",
    "what a failed attempt claimed is forgotten",
    "notes that come during a rebalance are dropped",
    "partitions are taken as listed",
    "partitions are read once",
    "nothing tells of new partitions",
    "no brokers is a failure",
    "gives up what is claimed",
    "what bears my name is mine",
    "claims go by the place in a list",
    "claims outlive their session",
    "claims are known by memory",
    "goes on after a break as before",
    "commits are not fenced",
    "the fence is not raised",
    "a failed attempt leaves no memory",
    "a batch is judged by its first answer",
    "positions outlive a hand-over",
    "claims of strangers are cleared away",
    "watches after it has read",
    "everybody has a share in every topic",
    "filters are not escaped",
]
"""The mistakes that can be planted; `zoo` says where each was made."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One version of the protocol: an answer to every question the pages raise."""

    name: str
    about: str
    release: Release
    layouts: tuple[Layout, ...]
    """Those it may run on; the first is its own."""

    # What is written
    broker_forms: tuple[tuple[Layout, BrokerForm], ...]
    """How a broker registers, in each layout."""
    consumer_id: Literal["host:uuid", "group_host-millis-uuid8"]
    owner_value: Literal["consumer", "thread"]
    offset_means: Literal["last consumed", "next"]

    # What is computed
    unit: Literal["consumer", "stream"]
    assignor: Assignor | None
    """None: as `partition.assignment.strategy` says."""

    # How a rebalance goes
    steps: tuple[Step, ...]
    steps_when_freed: tuple[Step, ...]
    """What is done when nothing has happened but that a claim in the way has gone."""
    topic_by_topic: bool
    """Whether all the steps are done for one topic before the next is looked at."""
    reads: Literal["one by one", "pipelined"]
    after_failure: Literal["try again", "back off", "wait for a watch"]
    cluster_read_is_retried: bool

    # What wakes it
    watches: Literal["members and brokers", "members and topics", "all that was read"]
    filters_watched: Literal["all", "all but plain white lists"]

    # What happens when the connection or the session goes
    requests: Literal["fail", "retried until connected"]
    client_resends_watches: bool
    when_suspended: Literal["go on", "stop fetching"]
    own_id_in_use: Literal[
        "an error", "mine if the data is the same", "sleep and try again", "wait for it to go"
    ]
    fetch_errors: Literal["end the fetcher", "are retried"]
    fenced: bool
    """Whether every write checks the version of the member's own id."""

    # How a broker registers
    broker_registration: Literal["id, then topics", "in one multi"]
    broker_id_in_use: Literal[
        "an error unless the data is the same",
        "sleep and try again if it is my address",
        "wait for it to go if it is my address",
    ]

    # For the zoo alone
    flaw: Flaw | None = None
    """The one mistake that was planted in it; none in the variants below."""

    def broker_form(self, layout: Layout) -> BrokerForm:
        """How a broker registers in this layout."""
        return dict(self.broker_forms)[layout]

    @property
    def layout(self) -> Layout:
        """The layout it was made for."""
        return self.layouts[0]

    @property
    def is_shipped(self) -> bool:
        """Whether it was a release of Kafka."""
        return self.watches == "members and topics"

    @property
    def backs_off(self) -> bool:
        """Whether its time to rest includes pauses of its own."""
        return self.after_failure != "wait for a watch"


DOCUMENTED = Variant(
    name="documented",
    about="the design pages to the letter; N rounded down",
    release="0.7.2",
    layouts=("0.7", "0.8"),
    broker_forms=(("0.7", "host:port"), ("0.8", "json with endpoints")),
    consumer_id="host:uuid",
    owner_value="consumer",
    offset_means="last consumed",
    unit="consumer",
    assignor="range_floor",
    steps=(
        "read brokers",
        "2 read partitions",
        "3 read members",
        "4-7 assign",
        "8 release by name",
        "9 claim until released",
        "read offsets",
        "start",
    ),
    steps_when_freed=(),
    topic_by_topic=True,
    reads="one by one",
    after_failure="try again",
    cluster_read_is_retried=True,
    watches="members and brokers",
    filters_watched="all",
    requests="fail",
    client_resends_watches=True,
    when_suspended="go on",
    own_id_in_use="an error",
    fetch_errors="are retried",
    fenced=False,
    broker_registration="id, then topics",
    broker_id_in_use="an error unless the data is the same",
)


DOCUMENTED_CEIL = replace(
    DOCUMENTED,
    name="documented_ceil",
    about="the design pages with N rounded up",
    assignor="range_ceil",
)

KAFKA_07 = Variant(
    name="kafka_07",
    about="Kafka 0.7.2 as shipped",
    release="0.7.2",
    layouts=("0.7",),
    broker_forms=(("0.7", "creator:host:port"),),
    consumer_id="group_host-millis-uuid8",
    owner_value="thread",
    offset_means="next",
    unit="stream",
    assignor="range",
    steps=(
        "read brokers",
        "read self",
        "3 read members",
        "2 read partitions",
        "stop all",
        "commit",
        "8 release all",
        "4-7 assign",
        "read offsets",
        "9 claim one by one",
        "start",
    ),
    steps_when_freed=(),
    topic_by_topic=False,
    reads="one by one",
    after_failure="back off",
    cluster_read_is_retried=False,
    watches="members and topics",
    filters_watched="all but plain white lists",
    requests="retried until connected",
    client_resends_watches=True,
    when_suspended="go on",
    own_id_in_use="mine if the data is the same",
    fetch_errors="end the fetcher",
    fenced=False,
    broker_registration="id, then topics",
    broker_id_in_use="an error unless the data is the same",
)

KAFKA_08 = replace(
    KAFKA_07,
    name="kafka_08",
    about="Kafka 0.8.2.2 as shipped",
    release="0.8.2",
    layouts=("0.8",),
    broker_forms=(("0.8", "json"),),
    assignor=None,
    steps=(
        "read self",
        "read brokers",
        "stop all",
        "commit",
        "8 release all",
        "2 read partitions",
        "3 read members",
        "4-7 assign",
        "read offsets",
        "9 claim one by one",
        "start",
    ),
    cluster_read_is_retried=True,
    filters_watched="all",
    own_id_in_use="sleep and try again",
    fetch_errors="are retried",
    broker_id_in_use="sleep and try again if it is my address",
)

HARDENED = Variant(
    name="hardened",
    about="what we would ship: claims by session, writes fenced, nothing waits on a clock",
    release="0.8.2",
    layouts=("0.7", "0.8"),
    broker_forms=(("0.7", "creator:host:port"), ("0.8", "json with endpoints")),
    consumer_id="group_host-millis-uuid8",
    owner_value="thread",
    offset_means="next",
    unit="stream",
    assignor=None,
    steps=(
        "fence",
        "2-3 look",
        "4-7 assign",
        "stop lost",
        "commit",
        "8 release lost",
        "9 claim what is free",
        "read offsets",
        "start",
    ),
    steps_when_freed=("9 claim what was freed", "read offsets", "start"),
    topic_by_topic=False,
    reads="pipelined",
    after_failure="wait for a watch",
    cluster_read_is_retried=True,
    watches="all that was read",
    filters_watched="all",
    requests="fail",
    client_resends_watches=False,
    when_suspended="stop fetching",
    own_id_in_use="wait for it to go",
    fetch_errors="are retried",
    fenced=True,
    broker_registration="in one multi",
    broker_id_in_use="wait for it to go if it is my address",
)

VARIANTS = {row.name: row for row in (DOCUMENTED, DOCUMENTED_CEIL, KAFKA_07, KAFKA_08, HARDENED)}
"""The sound variants, by name: those that somebody wrote down or shipped."""
