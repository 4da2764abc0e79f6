"""What a broker of 0.8 does with each request, whatever carries them."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.log.memory_storage import MemoryStorage
from watchkeeper.model.actor.effects import Emit
from watchkeeper.model.actor.errors import ConnectionLoss, Failure
from watchkeeper.model.actor.operations import (
    Create,
    Exists,
    GetData,
    Operation,
    Pipelined,
    SetData,
)
from watchkeeper.model.actor.tasks import Draw, Put, Take
from watchkeeper.model.broker_08.cluster import SingleBroker
from watchkeeper.model.broker_08.group_offsets import partition_of
from watchkeeper.model.broker_08.registry import RegistryCluster
from watchkeeper.model.broker_08.request_handler import (
    Found,
    HandlerSettings,
    Late,
    RefusedWithoutResponse,
    Serving08,
)
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, records, wrap
from watchkeeper.model.log.format.requests import EARLIEST, LATEST, encode_response
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    PartitionTime,
    RequestHeader,
    TopicTimes,
)
from watchkeeper.model.log_08.manager import KeyedLogs
from watchkeeper.model.log_08.settings import keyed_log_settings
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BrokerInfo
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommitRequestV1,
    CommittedRequest,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionCommit,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
    TimedCommit,
)
from watchkeeper.model.wire_08.metadata import BrokerEndpoint, MetadataRequest
from watchkeeper.model.wire_08.produce import (
    PartitionAppended,
    PartitionMessages,
    ProduceRequest,
    ProduceResponse,
)
from watchkeeper.model.zookeeper.standalone import Server, apply, open_session

SESSION = 1
ME = BrokerEndpoint(3, "h", 9092)
HEADER = RequestHeader(0, 0, 7, "c")
TWO = encode([KeyedMessage(None, b"a"), KeyedMessage(b"k", b"b")])


class Znodes:
    """A ZooKeeper that can be away."""

    def __init__(self) -> None:
        self.server = open_session(Server(), SESSION)
        self.is_away = False

    def put(self, path: str, data: bytes = b"") -> None:
        """Create a znode with those above it, or replace its data."""
        above = path.rpartition("/")[0]
        if above and self.answer(Exists(above)) is None:
            self.put(above)
        if self.answer(Exists(path)) is None:
            self.answer(Create(path, data))
        else:
            self.answer(SetData(path, data))

    def data(self, path: str) -> bytes | None:
        """The data of a znode."""
        found: bytes | None = self.answer(GetData(path)).data
        return found

    def answer(self, effect: Any) -> Any:
        """Answer an operation."""
        if isinstance(effect, Pipelined):
            return tuple(map(self.answer, effect.operations))
        if self.is_away:
            return Failure(ConnectionLoss, effect.path)
        applied = apply(self.server, SESSION, effect)
        self.server = applied.server
        return applied.answer


class Broker:
    """A broker whose requests are served one after the other."""

    def __init__(self, *, has_registry: bool = False, **settings: Any) -> None:
        self.storage = MemoryStorage()
        self.znodes = Znodes()
        self.queues: dict[str, deque[Any]] = {}
        self.later: list[Any] = []
        """What to do while a fetch waits."""
        logs = KeyedLogs(keyed_log_settings())
        self.storage.run(logs.start())
        cluster: Any = RegistryCluster(3, AutoCreation(2))
        if not has_registry:
            cluster = SingleBroker(ME, 2, self._existing, self._made)
        self.serving = Serving08(
            logs, 3, cluster, HandlerSettings(has_registry=has_registry, **settings)
        )

    def _existing(self) -> dict[str, int]:
        return dict.fromkeys(self.serving.logs.topics, 2)

    async def _made(self, topic: str, index: int) -> None:
        await self.serving.log_of(topic, index)

    def ask(self, request: Any) -> Any:
        """Serve one request."""
        return self.run(self.serving.answer(HEADER, request))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine to its end."""
        answer: Any = None
        while True:
            try:
                effect = coroutine.send(answer)
            except StopIteration as done:
                return done.value
            answer = self._answer(effect)

    def _answer(self, effect: Any) -> Any:
        if isinstance(effect, Put):
            self.queues.setdefault(effect.queue, deque()).append(effect.item)
            return True
        if isinstance(effect, Take):
            return self._taken(effect)
        if isinstance(effect, Draw | Emit):
            return 0
        if isinstance(effect, Operation | Pipelined):
            return self.znodes.answer(effect)
        return self.storage.answer(effect)

    def _taken(self, effect: Take) -> Any:
        queue = self.queues.setdefault(effect.queue, deque())
        if not queue and self.later:
            self.later.pop(0)()
        if queue:
            return queue.popleft()
        assert effect.timeout_ms is not None, "it would wait for ever"
        self.storage.now_ms += effect.timeout_ms
        return None

    # --- short forms -------------------------------------------------------------------

    def create(self, *topics: str) -> Any:
        """Request the metadata of topics, which creates them."""
        return self.ask(MetadataRequest(topics))

    def produce(
        self, data: bytes = TWO, partition: int = 0, acks: int = 1, topic: str = "t"
    ) -> PartitionAppended:
        """Append to a partition."""
        parts = (OfTopic(topic, (PartitionMessages(partition, data),)),)
        response = self.ask(ProduceRequest(acks, 500, parts))
        assert isinstance(response, ProduceResponse)
        assert response.correlation_id == HEADER.correlation_id
        [(name, (part,))] = response.topics
        assert name == topic
        return part

    def fetch(
        self, offset: int, *, wait_ms: int = 0, min_bytes: int = 1, partition: int = 0
    ) -> PartitionFetched:
        """Fetch from a partition; what goes over the wire is what the value encodes to."""
        parts = (OfTopic("t", (PartitionFetch(partition, offset, 1 << 20),)),)
        found = self.ask(FetchRequest(wait_ms, min_bytes, parts))
        assert isinstance(found, Found)
        sent = b"".join(
            part if isinstance(part, bytes) else self._bytes(part) for part in found.wire()
        )
        response = found.response(self._bytes)
        assert isinstance(response, FetchResponse)
        assert sent == encode_response(response)
        return response.topics[0].parts[0]

    def _bytes(self, view: Any) -> bytes:
        found = self.storage.files[view.path].contents[view.at : view.at + view.size_bytes]
        assert isinstance(found, bytes)
        return found


def values(part: PartitionFetched) -> list[tuple[int, bytes | None]]:
    """Offsets and values of what was fetched."""
    return [(one.offset, one.value) for one in records(part.messages)]


# --- produce and fetch -----------------------------------------------------------------


def test_what_was_appended_is_fetched() -> None:
    broker = Broker()
    broker.create("t")

    assert broker.produce() == PartitionAppended(0, 0, 0)
    assert broker.produce(wrap([KeyedMessage(None, b"c")], Codec.GZIP), acks=-1).offset == 2
    part = broker.fetch(0)
    assert (part.error_code, part.high_watermark) == (0, 3)
    assert values(part) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert values(broker.fetch(2)) == [(2, b"c")]
    assert broker.fetch(3) == PartitionFetched(0, 0, 3)


@pytest.mark.parametrize(
    ("partition", "topic", "code"),
    [
        (2, "t", PartitionError.UNKNOWN_TOPIC_OR_PARTITION),
        (0, "u", PartitionError.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, "t", PartitionError.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_partition_that_is_not_there(partition: int, topic: str, code: int) -> None:
    broker = Broker()
    broker.create("t")

    assert broker.produce(partition=partition, topic=topic) == PartitionAppended(partition, code)


def test_errors_of_a_fetch_have_codes() -> None:
    broker = Broker()
    broker.create("t")

    assert broker.fetch(0, partition=9) == PartitionFetched(9, 3)
    assert broker.fetch(1) == PartitionFetched(0, 1)
    broker.produce()
    assert broker.fetch(3) == PartitionFetched(0, 1)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (TWO[:-1] + b"!", PartitionError.INVALID_MESSAGE),
        (TWO[:20], PartitionError.INVALID_FETCH_SIZE),
        (encode([KeyedMessage(None, bytes(1_000_013))]), PartitionError.MESSAGE_SIZE_TOO_LARGE),
        (encode([KeyedMessage(None, b"?", 6)]), PartitionError.UNKNOWN),
    ],
    ids=("a wrong CRC", "no whole entry", "too large", "an unknown codec"),
)
def test_a_refused_set_has_a_code_and_the_log_goes_on(data: bytes, code: int) -> None:
    broker = Broker()
    broker.create("t")

    assert broker.produce(data) == PartitionAppended(0, code)
    assert broker.produce().offset == 0


def test_acks_0_has_no_response_and_an_error_closes_the_connection() -> None:
    broker = Broker()
    broker.create("t")
    parts = (OfTopic("t", (PartitionMessages(0, TWO),)),)

    assert broker.ask(ProduceRequest(0, 500, parts)) is None
    with pytest.raises(RefusedWithoutResponse, match=r"u-0.*UNKNOWN_TOPIC"):
        broker.ask(ProduceRequest(0, 500, (OfTopic("u", parts[0].parts),)))
    assert len(values(broker.fetch(0))) == 2


def test_more_acks_than_replicas_time_out_after_the_append() -> None:
    broker = Broker()
    broker.create("t")

    late = broker.ask(ProduceRequest(2, 500, (OfTopic("t", (PartitionMessages(0, TWO),)),)))
    assert isinstance(late, Late)
    assert late.delay_ms == 500
    timed_out = PartitionAppended(0, PartitionError.REQUEST_TIMED_OUT, 0)
    assert late.response == ProduceResponse(7, (OfTopic("t", (timed_out,)),))
    assert broker.produce(acks=-2).error_code == PartitionError.INVALID_REQUIRED_ACKS
    assert broker.fetch(0).high_watermark == 2


# --- a fetch that waits ----------------------------------------------------------------


def test_a_fetch_waits_no_longer_than_it_says() -> None:
    broker = Broker()
    broker.create("t")
    before_ms = broker.storage.now_ms

    assert broker.fetch(0, wait_ms=300) == PartitionFetched(0, 0, 0)
    assert broker.storage.now_ms == before_ms + 300


def test_an_append_wakes_the_fetches_of_its_partition() -> None:
    broker = Broker()
    broker.create("t")
    before_ms = broker.storage.now_ms

    broker.later = [broker.produce]
    assert values(broker.fetch(0, wait_ms=300)) == [(0, b"a"), (1, b"b")]
    assert broker.storage.now_ms == before_ms

    broker.later = [lambda: broker.produce(partition=1)]
    assert broker.fetch(2, wait_ms=300) == PartitionFetched(0, 0, 2)
    assert broker.storage.now_ms == before_ms + 300


def test_a_fetch_waits_for_as_many_bytes_as_it_says() -> None:
    broker = Broker()
    broker.create("t")
    broker.later = [broker.produce, broker.produce, broker.produce]

    part = broker.fetch(0, wait_ms=300, min_bytes=2 * len(TWO))

    assert len(values(part)) == 4
    assert len(broker.later) == 1


def test_an_error_is_not_waited_with() -> None:
    broker = Broker()
    before_ms = broker.storage.now_ms

    assert broker.fetch(0, wait_ms=300).error_code == 3
    assert broker.storage.now_ms == before_ms


# --- offsets and metadata --------------------------------------------------------------


def test_offsets_before_a_time() -> None:
    broker = Broker()
    broker.create("t")
    broker.produce()

    times = (PartitionTime(0, LATEST), PartitionTime(0, EARLIEST), PartitionTime(1, LATEST))
    response = broker.ask(OffsetsRequest((TopicTimes("t", (*times, PartitionTime(5))),)))
    assert isinstance(response, OffsetsResponse)
    found = [(one.error_code, one.offsets) for one in response.topics[0].partitions]
    assert found == [(0, (2,)), (0, (0,)), (0, (0,)), (3, ())]


def test_metadata_creates_topics_if_the_settings_say_so() -> None:
    found = Broker().create("t", "no/name")
    refused = Broker(creates_topics=False).create("t")

    assert found.brokers == (ME,)
    assert [(each.error_code, len(each.partitions)) for each in found.topics] == [(0, 2), (17, 0)]
    assert {one.leader for one in found.topics[0].partitions} == {3}
    assert refused.topics[0].error_code == PartitionError.UNKNOWN_TOPIC_OR_PARTITION


def test_metadata_without_topics_is_about_all() -> None:
    broker = Broker()
    broker.create("b", "a")

    assert [each.topic for each in broker.create().topics] == ["a", "b"]


# --- the registry ----------------------------------------------------------------------


def registered(*others: int) -> Broker:
    """A broker in a registry, with other brokers that are alive."""
    broker = Broker(has_registry=True)
    for each in (3, *others):
        info = BrokerInfo("h", 9092) if each == 3 else BrokerInfo(f"h{each}", 9000 + each)
        broker.znodes.put(paths.broker(each), paths.encode_broker(info, "json"))
    return broker


def state_of(broker: Broker, topic: str, index: int) -> PartitionState:
    """The state of a partition in ZooKeeper."""
    path = f"/brokers/topics/{topic}/partitions/{index}/state"
    return PartitionState.decode(path, broker.znodes.data(path))


def put_topic(broker: Broker, replicas: dict[int, tuple[int, ...]]) -> None:
    """A topic that an administrator has made."""
    data = TopicAssignment(tuple(replicas.items())).encode()
    broker.znodes.put(paths.topic("t"), data)


def test_a_topic_that_is_created_is_claimed_and_served() -> None:
    broker = registered()

    broker.create("t")

    assert state_of(broker, "t", 1) == PartitionState(3, (3,), 0, 0)
    assert broker.produce(partition=1).offset == 0


def test_only_partitions_of_this_broker_alone_are_claimed() -> None:
    broker = registered(4)
    put_topic(broker, {0: (3,), 1: (4,), 2: (3, 4)})

    response = broker.create("t")

    leaders = [(one.error_code, one.leader) for one in response.topics[0].partitions]
    assert leaders == [(0, 3), (5, -1), (5, -1)]
    assert broker.produce(partition=1).error_code == PartitionError.NOT_LEADER_FOR_PARTITION


def test_with_a_controller_nothing_is_claimed() -> None:
    broker = registered()
    broker.znodes.put("/controller", b'{"version":1,"brokerid":4,"timestamp":"1"}')
    put_topic(broker, {0: (3,)})

    assert broker.create("t").topics[0].partitions[0].error_code == 5
    broker.znodes.put(
        "/brokers/topics/t/partitions/0/state", PartitionState(3, (3,), 0, 1).encode()
    )
    assert broker.create("t").topics[0].partitions[0].leader == 3


def test_a_partition_that_lost_its_leader_is_claimed_in_the_next_epoch() -> None:
    broker = registered()
    put_topic(broker, {0: (3,)})
    path = "/brokers/topics/t/partitions/0/state"
    broker.znodes.put(path, PartitionState(-1, (3,), 8, 2).encode())

    broker.create("t")

    assert state_of(broker, "t", 0) == PartitionState(3, (3,), 9, 0)


def test_only_live_brokers_are_named() -> None:
    broker = registered(4)
    put_topic(broker, {0: (4, 5)})
    path = "/brokers/topics/t/partitions/0/state"
    broker.znodes.put(path, PartitionState(4, (4, 5)).encode())

    [one] = broker.create("t").topics[0].partitions

    assert (one.error_code, one.leader) == (PartitionError.REPLICA_NOT_AVAILABLE, 4)
    assert (one.replicas, one.isr) == ((4,), (4,))


def test_a_registry_that_is_away_leaves_the_view_as_it_was() -> None:
    broker = registered()
    broker.create("t")
    broker.znodes.is_away = True

    assert broker.create("t").topics[0].error_code == 0
    assert broker.produce().offset == 0


# --- the offsets of groups -------------------------------------------------------------


def committed(broker: Broker, partition: int = 0, group: str = "g") -> Any:
    """What a fetch of offsets of version 0 gives."""
    request = CommittedRequest(group, (OfTopic("t", (PartitionNumber(partition),)),))
    return broker.ask(request).topics[0].parts[0]


def commit(broker: Broker, *parts: PartitionCommit, topic: str = "t", group: str = "g") -> Any:
    """What a commit of version 0 gives."""
    return broker.ask(CommitRequest(group, (OfTopic(topic, parts),))).topics[0].parts


def test_offsets_of_version_0_are_in_zookeeper() -> None:
    broker = registered()
    broker.create("t")

    assert committed(broker) == PartitionCommitted(0, -1, "", 3)
    assert commit(broker, PartitionCommit(0, 42, "kept nowhere")) == (PartitionOutcome(0),)
    assert broker.znodes.data("/consumers/g/offsets/t/0") == b"42"
    assert committed(broker) == PartitionCommitted(0, 42)
    commit(broker, PartitionCommit(0, 43, None))
    assert committed(broker).offset == 43


def test_a_commit_is_refused_partition_by_partition() -> None:
    broker = registered()
    broker.create("t")

    parts = commit(broker, PartitionCommit(0, 1, "x" * 4096), PartitionCommit(1, 1, "x" * 4097))
    assert [one.error_code for one in parts] == [0, PartitionError.OFFSET_METADATA_TOO_LARGE]
    assert commit(broker, PartitionCommit(0, 1), topic="u")[0].error_code == 3
    assert commit(broker, PartitionCommit(0, 1), group="a/b")[0].error_code == -1
    broker.znodes.is_away = True
    assert commit(broker, PartitionCommit(0, 1))[0].error_code == -1
    assert committed(broker).error_code == -1


def test_without_a_registry_there_is_no_place_for_offsets() -> None:
    broker = Broker()
    broker.create("t")

    assert commit(broker, PartitionCommit(0, 1)) == (PartitionOutcome(0, -1),)
    assert committed(broker) == PartitionCommitted(0, -1, "", -1)


def test_version_1_is_for_a_coordinator() -> None:
    broker = registered(4)
    broker.create("t")
    timed = CommitRequestV1("group1", (OfTopic("t", (TimedCommit(0, 1),)),))
    wanted = CommittedRequestV1("group1", (OfTopic("t", (PartitionNumber(0),)),))
    coordinator = ConsumerMetadataRequest("group1")

    assert broker.ask(coordinator).error_code == 15
    assert broker.ask(timed).topics[0].parts == (PartitionOutcome(0, 15),)
    assert broker.ask(wanted).topics[0].parts == (PartitionCommitted(0, -1, "", 15),)

    rows = {index: ((4,) if index == 40 else (3,)) for index in range(50)}
    path = paths.topic("__consumer_offsets")
    broker.znodes.put(path, TopicAssignment(tuple(rows.items())).encode())
    state = PartitionState(4, (4,)).encode()
    broker.znodes.put(f"{path}/partitions/40/state", state)
    broker.create("t")

    found = broker.ask(coordinator)
    assert (found.error_code, found.broker, found.host, found.port) == (0, 4, "h4", 9004)
    assert broker.ask(timed).topics[0].parts == (PartitionOutcome(0, 16),)
    assert broker.ask(ConsumerMetadataRequest("g1")).error_code == 15, "it would be this broker"


@pytest.mark.parametrize(
    ("group", "partition"),
    [("test-group", 12), ("g1", 42), ("console-consumer-1", 24), ("group1", 40)],
)
def test_the_partition_of_a_group(group: str, partition: int) -> None:
    """As Kafka 0.8.2.2 computes it."""
    assert partition_of(group, 50) == partition
