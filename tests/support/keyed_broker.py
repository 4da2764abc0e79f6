"""A broker of 0.8 in memory, for tests: its requests are served one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import Any

from tests.support.log.memory_storage import MemoryStorage
from watchkeeper.model.actor.effects import Emit, Sleep
from watchkeeper.model.actor.errors import ConnectionLoss, Failure
from watchkeeper.model.actor.operations import (
    Create,
    Exists,
    GetData,
    Operation,
    Pipelined,
    SetData,
)
from watchkeeper.model.actor.tasks import Draw, Put, Start, Take
from watchkeeper.model.broker_08.cluster import SingleBroker
from watchkeeper.model.broker_08.registry import RegistryCluster
from watchkeeper.model.broker_08.request_handler import Found, HandlerSettings, Serving08
from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode
from watchkeeper.model.log.format.requests import encode_response
from watchkeeper.model.log.format.requests_08 import RequestHeader
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.log_08.manager import KeyedLogs
from watchkeeper.model.log_08.settings import keyed_log_settings
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BrokerInfo
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
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

    def __init__(
        self,
        *,
        has_registry: bool = False,
        log_settings: BrokerLogSettings | None = None,
        **settings: Any,
    ) -> None:
        self.storage = MemoryStorage()
        self.znodes = Znodes()
        self.queues: dict[str, deque[Any]] = {}
        self.later: list[Any] = []
        """What to do while a fetch waits, or between two chunks of a load."""
        self.emitted: list[Emit] = []
        self._tasks: deque[Coroutine[Any, Any, None]] = deque()
        self._settings = settings
        self._log_settings = log_settings or keyed_log_settings()
        self._has_registry = has_registry
        self.start()

    def start(self) -> None:
        """Start a process on the files that are there."""
        self.queues.clear()
        logs = KeyedLogs(self._log_settings)
        self.storage.run(logs.start())
        cluster: Any = RegistryCluster(3, AutoCreation(2))
        if not self._has_registry:
            cluster = SingleBroker(ME, 2, self._existing, self._made)
        self.serving = Serving08(
            logs,
            3,
            cluster,
            HandlerSettings(has_registry=self._has_registry, **self._settings),
        )

    def _existing(self) -> dict[str, int]:
        keys = [partition_of(log.folder) for log in self.serving.logs.all()]
        highest: dict[str, int] = {}
        for topic, index in filter(None, keys):
            highest[topic] = max(highest.get(topic, 0), index + 1)
        return highest

    async def _made(self, topic: str, index: int) -> None:
        await self.serving.log_of(topic, index)

    def ask(self, request: Any) -> Any:
        """Serve one request."""
        answer = self.run(self.serving.answer(HEADER, request))
        self.run_tasks()
        return answer

    def run_tasks(self) -> None:
        """Run the tasks that were started to their ends."""
        while self._tasks:
            self.run(self._tasks.popleft())

    def run(self, coroutine: Coroutine[Any, Any, Any], effect: Any = None) -> Any:
        """Drive a coroutine to its end; `effect` is what it has awaited last."""
        answer = None if effect is None else self.answer(effect)
        while True:
            try:
                effect = coroutine.send(answer)
            except StopIteration as done:
                return done.value
            answer = self.answer(effect)

    def answer(self, effect: Any) -> Any:
        """Answer an effect."""
        if isinstance(effect, Put):
            self.queues.setdefault(effect.queue, deque()).append(effect.item)
            return True
        if isinstance(effect, Take):
            return self._taken(effect)
        if isinstance(effect, Emit):
            self.emitted.append(effect)
            return None
        if isinstance(effect, Draw):
            return 0
        if isinstance(effect, Start):
            self._tasks.append(effect.thread())
            return None
        if isinstance(effect, Sleep):
            if self.later:
                self.later.pop(0)()
            return None
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
        self,
        offset: int,
        *,
        wait_ms: int = 0,
        min_bytes: int = 1,
        partition: int = 0,
        topic: str = "t",
    ) -> PartitionFetched:
        """Fetch from a partition; what goes over the wire is what the value encodes to."""
        parts = (OfTopic(topic, (PartitionFetch(partition, offset, 1 << 20),)),)
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


def registered(*others: int) -> Broker:
    """A broker in a registry, with other brokers that are alive."""
    broker = Broker(has_registry=True)
    for each in (3, *others):
        info = BrokerInfo("h", 9092) if each == 3 else BrokerInfo(f"h{each}", 9000 + each)
        broker.znodes.put(paths.broker(each), paths.encode_broker(info, "json"))
    return broker
