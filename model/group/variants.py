"""The versions of the protocol, as one table.

A variant answers every question that the design pages leave open or settle in two ways.
The protocol code reads single answers and never compares a variant's name. Each answer is
an enum; its value is the text of the cell in the table of `docs/reference/variants.md`.

  documented       the design pages to the letter, shares rounded down
  documented_ceil  the same with shares rounded up
  kafka_07         Kafka 0.7.2 as shipped
  kafka_08         Kafka 0.8.2.2 as shipped
  hardened         what we would ship today
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from watchkeeper.model.group.assignment import Assignor
from watchkeeper.model.group.settings import Release
from watchkeeper.model.registry.paths import BrokerForm, Layout


class Step(StrEnum):
    """The steps of a rebalance. The numbers are those of the design pages."""

    READ_SELF = "read self"
    READ_BROKERS = "read brokers"
    FENCE = "fence"
    READ_PARTITIONS = "2 read partitions"
    READ_MEMBERS = "3 read members"
    READ_PIPELINED = "2-3 read in batches"
    ASSIGN = "4-7 assign"
    STOP_ALL = "stop all"
    STOP_LOST = "stop lost"
    COMMIT = "commit"
    RELEASE_ALL = "8 release all"
    RELEASE_LOST = "8 release lost"
    RELEASE_BY_NAME = "8 release by name"
    READ_OFFSETS = "read offsets"
    CLAIM_ONE_BY_ONE = "9 claim one by one"
    CLAIM_UNTIL_RELEASED = "9 claim until released"
    CLAIM_FREE = "9 claim what is free"
    CLAIM_FREED = "9 claim what was freed"
    START = "start"


CLAIM_STEPS = frozenset(
    {Step.CLAIM_ONE_BY_ONE, Step.CLAIM_UNTIL_RELEASED, Step.CLAIM_FREE, Step.CLAIM_FREED}
)


class ConsumerIdForm(StrEnum):
    """How the id of a consumer is built."""

    HOST_UUID = "host:uuid"
    GROUP_HOST_MILLIS_UUID = "group_host-millis-uuid8"


class OwnerValue(StrEnum):
    """Whose id the data of a claim holds."""

    CONSUMER = "consumer"
    STREAM = "thread"


class OffsetMeaning(StrEnum):
    """Which message a committed offset names."""

    LAST_CONSUMED = "last consumed"
    NEXT = "next"


class Unit(StrEnum):
    """What partitions are assigned to."""

    CONSUMER = "consumer"
    STREAM = "stream"


class Reads(StrEnum):
    """How the offsets of several partitions are read."""

    ONE_BY_ONE = "one by one"
    PIPELINED = "pipelined"


class AfterFailure(StrEnum):
    """What follows a failed rebalance."""

    TRY_AGAIN = "try again"
    BACK_OFF = "back off"
    WAIT_FOR_WATCH = "wait for a watch"


class WatchedPaths(StrEnum):
    """Which znodes a consumer watches."""

    MEMBERS_AND_BROKERS = "members and brokers"
    MEMBERS_AND_TOPICS = "members and topics"
    ALL_READ = "all that was read"


class WatchedFilters(StrEnum):
    """Which topic filters need a watch on the list of topics."""

    ALL = "all"
    ALL_BUT_PLAIN_WHITE_LISTS = "all but plain white lists"


class RequestPolicy(StrEnum):
    """What happens to a request whose connection breaks."""

    FAIL = "fail"
    RETRY_UNTIL_CONNECTED = "retried until connected"


class WhenSuspended(StrEnum):
    """What a consumer does while it is disconnected."""

    GO_ON = "go on"
    STOP_FETCHING = "stop fetching"


class OwnIdInUse(StrEnum):
    """What a consumer does if its id is registered already."""

    ERROR = "an error"
    MINE_IF_SAME_DATA = "mine if the data is the same"
    SLEEP_AND_RETRY = "mine if the data is the same, else sleep and try again"
    WAIT_FOR_DELETION = "wait for it to go"


class FetchErrors(StrEnum):
    """What a fetcher does after an error."""

    END_FETCHER = "end the fetcher"
    RETRY = "are retried"


class BrokerRegistration(StrEnum):
    """How a broker of the 0.7 layout writes its id and its topics."""

    ID_THEN_TOPICS = "id, then topics"
    ONE_MULTI = "in one multi"


class BrokerIdInUse(StrEnum):
    """What a broker does if its id is registered already."""

    ERROR_UNLESS_SAME_DATA = "an error unless the data is the same"
    RETRY_IF_OWN_ADDRESS = "sleep and try again if it is my address"
    WAIT_IF_OWN_ADDRESS = "wait for it to go if it is my address"


@dataclass(frozen=True, slots=True)
class Variant:
    """One version of the protocol: an answer to every question that the pages raise."""

    name: str
    about: str
    release: Release
    layouts: tuple[Layout, ...]
    """The layouts it runs on; the first is the one it was made for."""

    # What is written
    broker_forms: tuple[tuple[Layout, BrokerForm], ...]
    """The form of a broker's registration in each layout."""
    consumer_id: ConsumerIdForm
    owner_value: OwnerValue
    offset_means: OffsetMeaning

    # What is computed
    unit: Unit
    assignor: Assignor | None
    """None: as `partition.assignment.strategy` says."""

    # The rebalance
    steps: tuple[Step, ...]
    steps_when_freed: tuple[Step, ...]
    """The steps after nothing but the deletion of a claim that stood in the way."""
    topic_by_topic: bool
    """Whether all steps are taken for one topic before the next."""
    reads: Reads
    after_failure: AfterFailure
    cluster_read_is_retried: bool

    # What triggers it
    watches: WatchedPaths
    filters_watched: WatchedFilters

    # Loss of the connection or the session
    requests: RequestPolicy
    client_resends_watches: bool
    when_suspended: WhenSuspended
    own_id_in_use: OwnIdInUse
    fetch_errors: FetchErrors
    fenced: bool
    """Whether every write checks the version of the member's own registration."""

    # The registration of a broker
    broker_registration: BrokerRegistration
    broker_id_in_use: BrokerIdInUse

    def broker_form(self, layout: Layout) -> BrokerForm:
        """Return the form of a broker's registration in a layout."""
        return dict(self.broker_forms)[layout]

    @property
    def layout(self) -> Layout:
        """The layout that the variant was made for."""
        return self.layouts[0]

    @property
    def is_shipped(self) -> bool:
        """Whether the variant was a release of Kafka."""
        return self.watches is WatchedPaths.MEMBERS_AND_TOPICS

    @property
    def backs_off(self) -> bool:
        """Whether members pause between attempts, which delays quiescence."""
        return self.after_failure is not AfterFailure.WAIT_FOR_WATCH

    @property
    def gives_up(self) -> bool:
        """Whether a rebalance ends after a number of attempts, whatever they came to."""
        return self.after_failure is AfterFailure.BACK_OFF


DOCUMENTED = Variant(
    name="documented",
    about="the design pages to the letter; N rounded down",
    release="0.7.2",
    layouts=("0.7", "0.8"),
    broker_forms=(("0.7", "host:port"), ("0.8", "json with endpoints")),
    consumer_id=ConsumerIdForm.HOST_UUID,
    owner_value=OwnerValue.CONSUMER,
    offset_means=OffsetMeaning.LAST_CONSUMED,
    unit=Unit.CONSUMER,
    assignor="range_floor",
    steps=(
        Step.READ_BROKERS,
        Step.READ_PARTITIONS,
        Step.READ_MEMBERS,
        Step.ASSIGN,
        Step.RELEASE_BY_NAME,
        Step.CLAIM_UNTIL_RELEASED,
        Step.READ_OFFSETS,
        Step.START,
    ),
    steps_when_freed=(),
    topic_by_topic=True,
    reads=Reads.ONE_BY_ONE,
    after_failure=AfterFailure.TRY_AGAIN,
    cluster_read_is_retried=True,
    watches=WatchedPaths.MEMBERS_AND_BROKERS,
    filters_watched=WatchedFilters.ALL,
    requests=RequestPolicy.FAIL,
    client_resends_watches=True,
    when_suspended=WhenSuspended.GO_ON,
    own_id_in_use=OwnIdInUse.ERROR,
    fetch_errors=FetchErrors.RETRY,
    fenced=False,
    broker_registration=BrokerRegistration.ID_THEN_TOPICS,
    broker_id_in_use=BrokerIdInUse.ERROR_UNLESS_SAME_DATA,
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
    consumer_id=ConsumerIdForm.GROUP_HOST_MILLIS_UUID,
    owner_value=OwnerValue.STREAM,
    offset_means=OffsetMeaning.NEXT,
    unit=Unit.STREAM,
    assignor="range",
    steps=(
        Step.READ_BROKERS,
        Step.READ_SELF,
        Step.READ_MEMBERS,
        Step.READ_PARTITIONS,
        Step.STOP_ALL,
        Step.COMMIT,
        Step.RELEASE_ALL,
        Step.ASSIGN,
        Step.READ_OFFSETS,
        Step.CLAIM_ONE_BY_ONE,
        Step.START,
    ),
    steps_when_freed=(),
    topic_by_topic=False,
    reads=Reads.ONE_BY_ONE,
    after_failure=AfterFailure.BACK_OFF,
    cluster_read_is_retried=False,
    watches=WatchedPaths.MEMBERS_AND_TOPICS,
    filters_watched=WatchedFilters.ALL_BUT_PLAIN_WHITE_LISTS,
    requests=RequestPolicy.RETRY_UNTIL_CONNECTED,
    client_resends_watches=True,
    when_suspended=WhenSuspended.GO_ON,
    own_id_in_use=OwnIdInUse.MINE_IF_SAME_DATA,
    fetch_errors=FetchErrors.END_FETCHER,
    fenced=False,
    broker_registration=BrokerRegistration.ID_THEN_TOPICS,
    broker_id_in_use=BrokerIdInUse.ERROR_UNLESS_SAME_DATA,
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
        Step.READ_SELF,
        Step.READ_BROKERS,
        Step.STOP_ALL,
        Step.COMMIT,
        Step.RELEASE_ALL,
        Step.READ_PARTITIONS,
        Step.READ_MEMBERS,
        Step.ASSIGN,
        Step.READ_OFFSETS,
        Step.CLAIM_ONE_BY_ONE,
        Step.START,
    ),
    cluster_read_is_retried=True,
    filters_watched=WatchedFilters.ALL,
    own_id_in_use=OwnIdInUse.SLEEP_AND_RETRY,
    fetch_errors=FetchErrors.RETRY,
    broker_id_in_use=BrokerIdInUse.RETRY_IF_OWN_ADDRESS,
)

HARDENED = Variant(
    name="hardened",
    about="the version that we would ship: claims by session, fenced writes, no timed waits",
    release="0.8.2",
    layouts=("0.7", "0.8"),
    broker_forms=(("0.7", "creator:host:port"), ("0.8", "json with endpoints")),
    consumer_id=ConsumerIdForm.GROUP_HOST_MILLIS_UUID,
    owner_value=OwnerValue.STREAM,
    offset_means=OffsetMeaning.NEXT,
    unit=Unit.STREAM,
    assignor=None,
    steps=(
        Step.FENCE,
        Step.READ_PIPELINED,
        Step.ASSIGN,
        Step.STOP_LOST,
        Step.COMMIT,
        Step.RELEASE_LOST,
        Step.CLAIM_FREE,
        Step.READ_OFFSETS,
        Step.START,
    ),
    steps_when_freed=(Step.CLAIM_FREED, Step.READ_OFFSETS, Step.START),
    topic_by_topic=False,
    reads=Reads.PIPELINED,
    after_failure=AfterFailure.WAIT_FOR_WATCH,
    cluster_read_is_retried=True,
    watches=WatchedPaths.ALL_READ,
    filters_watched=WatchedFilters.ALL,
    requests=RequestPolicy.FAIL,
    client_resends_watches=False,
    when_suspended=WhenSuspended.STOP_FETCHING,
    own_id_in_use=OwnIdInUse.WAIT_FOR_DELETION,
    fetch_errors=FetchErrors.RETRY,
    fenced=True,
    broker_registration=BrokerRegistration.ONE_MULTI,
    broker_id_in_use=BrokerIdInUse.WAIT_IF_OWN_ADDRESS,
)

VARIANTS = {row.name: row for row in (DOCUMENTED, DOCUMENTED_CEIL, KAFKA_07, KAFKA_08, HARDENED)}
"""The variants without mutations, by name: documented, shipped, and hardened."""
