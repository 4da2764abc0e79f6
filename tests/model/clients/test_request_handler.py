"""What a broker does with each of the five requests, whatever carries them."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from tests.support.log.memory_storage import MemoryStorage
from tests.support.log.messages import FORTY_TWO, TEST
from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.actor.tasks import Draw, Put, Remind, Take
from watchkeeper.model.broker.request_handler import TOGETHER, Reply, Serving
from watchkeeper.model.log.format.contents import Contents, Series, whole_series
from watchkeeper.model.log.format.errors import InvalidMessage, InvalidTopic, WrongPartition
from watchkeeper.model.log.format.requests import (
    ANY_PARTITION,
    EARLIEST,
    LATEST,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    Request,
    decode_response,
    encode_response,
)
from watchkeeper.model.log.log import AppendResult, LogStopped
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.settings import log_settings
from watchkeeper.model.log.storage import Append, DiskFailed


class Broker:
    """A broker whose requests are served one step at a time, in any order."""

    def __init__(self, **given: Any) -> None:
        self.storage = MemoryStorage()
        settings = {"log_flush_interval": 1, "num_partitions": 2, **given}
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.logs = LogManager(log_settings(named))
        self.queues: dict[str, deque[Any]] = {}
        self.reminded: list[Any] = []
        self.drawn = 0
        self.stored: list[tuple[str, int, Contents, AppendResult]] = []
        self.serving = Serving(self.logs, lambda *what: self.stored.append(what))
        self.storage.run(self.logs.start())

    def steps(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, None, Any]:
        """Serve, and stop before each answer."""
        answer: Any = None
        while True:
            try:
                effect = coroutine.send(answer)
            except StopIteration as done:
                return done.value
            yield effect
            while (
                isinstance(effect, Put) and len(self.queues.get(effect.queue, ())) >= effect.bound
            ):
                yield effect
            answer = self._answer(effect)

    def _answer(self, effect: Any) -> Any:
        if isinstance(effect, Put):
            self.queues.setdefault(effect.queue, deque()).append(effect.item)
            return True
        if isinstance(effect, Take):
            return self.queues[effect.queue].popleft()
        if isinstance(effect, Draw):
            return self.drawn
        if isinstance(effect, Remind):
            return self.reminded.append(effect.notification)
        return self.storage.answer(effect)

    def ask(self, request: Request) -> Any:
        """Serve one request."""
        steps = self.steps(self.serving.answer(request))
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value

    def fetched(self, request: Request) -> Any:
        """What a client is answered, once over the wire and once as a value; they are alike."""
        reply: Reply = self.ask(request)
        wire = b"".join(
            part if isinstance(part, bytes) else self._bytes(part) for part in reply.wire()
        )
        response = reply.response(self._bytes)
        assert wire == encode_response(response)
        assert decode_response(request, wire[4:]) == response
        return response

    def _bytes(self, view: Any) -> bytes:
        found = self.storage.files[view.path].contents[view.at : view.at + view.size_bytes]
        assert isinstance(found, bytes)
        return found


def test_what_was_appended_is_fetched() -> None:
    broker = Broker()

    assert broker.ask(ProduceRequest("clicks", 1, TEST + FORTY_TWO)) is None

    assert broker.fetched(FetchRequest("clicks", 1, 14, 1000)) == FetchResponse(FORTY_TWO)
    assert broker.stored == [("clicks", 1, TEST + FORTY_TWO, AppendResult(0, 2, 26))]


def test_a_topic_that_comes_into_being_is_announced_once() -> None:
    broker = Broker()

    for partition in (1, 0, 1):
        broker.ask(ProduceRequest("clicks", partition, TEST))

    assert broker.reminded == [Command(CommandKind.CREATE_TOPIC, "clicks", 2)]


def test_any_partition_is_one_that_is_drawn() -> None:
    broker = Broker()
    broker.drawn = 1

    broker.ask(ProduceRequest("clicks", ANY_PARTITION, TEST))

    assert [topic_and_partition[:2] for topic_and_partition in broker.stored] == [("clicks", 1)]


FETCHES = {
    "an unknown topic holds nothing": (FetchRequest("other", 0, 0, 10), FetchResponse(b"")),
    "before the beginning": (FetchRequest("clicks", 0, -1, 10), FetchResponse(b"", 1)),
    "at the end": (FetchRequest("clicks", 0, 14, 10), FetchResponse(b"")),
    "beyond the end": (FetchRequest("clicks", 0, 15, 10), FetchResponse(b"", 1)),
    "no such partition": (FetchRequest("clicks", 2, 0, 10), FetchResponse(b"", 3)),
    "partition -1": (FetchRequest("clicks", -1, 0, 10), FetchResponse(b"", 3)),
    "no such name": (FetchRequest("..", 0, 0, 10), FetchResponse(b"", -1)),
    "less than an entry": (FetchRequest("clicks", 0, 0, 5), FetchResponse(TEST[:5])),
    "less than nothing": (FetchRequest("clicks", 0, 0, -5), FetchResponse(b"")),
}


@pytest.mark.parametrize(("request_", "response"), FETCHES.values(), ids=FETCHES)
def test_a_fetch_gives_what_is_there_or_a_code(
    request_: FetchRequest, response: FetchResponse
) -> None:
    broker = Broker()
    broker.ask(ProduceRequest("clicks", 0, TEST))
    folders = set(broker.storage.folders)

    assert broker.fetched(request_) == response
    assert broker.storage.folders == folders


def test_each_part_of_a_multifetch_has_an_error_of_its_own() -> None:
    broker = Broker()
    broker.ask(ProduceRequest("clicks", 0, TEST))
    broker.ask(ProduceRequest("clicks", 1, FORTY_TWO))
    fetches = [
        FetchRequest("clicks", 0, 0, 100),
        FetchRequest("clicks", 0, 99, 100),
        FetchRequest("clicks", 1, 0, 100),
    ]

    response = broker.fetched(MultiFetchRequest(tuple(fetches)))

    assert response == MultiFetchResponse(
        (FetchResponse(TEST), FetchResponse(b"", 1), FetchResponse(FORTY_TWO))
    )


def test_offsets_are_those_of_the_log() -> None:
    broker = Broker()
    broker.ask(ProduceRequest("clicks", 0, TEST))

    parameters = [(LATEST, 10), (EARLIEST, 10), (LATEST, 1), (LATEST, -1)]
    answers = [broker.ask(OffsetsRequest("clicks", 0, *request)) for request in parameters]

    assert [answer.offsets for answer in answers] == [(14, 0), (0,), (14,), ()]
    assert broker.ask(OffsetsRequest("clicks", 7, LATEST, 1)) == OffsetsResponse(error_code=3)


# --- what is refused -------------------------------------------------------------------

DAMAGED = TEST[:-1] + b"x"
REFUSED = {
    "a damaged message": (ProduceRequest("clicks", 0, DAMAGED), InvalidMessage),
    "no such partition": (ProduceRequest("clicks", 2, TEST), WrongPartition),
    "no such name": (ProduceRequest("a/b", 0, TEST), InvalidTopic),
}


@pytest.mark.parametrize(("request_", "error"), REFUSED.values(), ids=REFUSED)
def test_a_produce_request_is_refused_as_a_whole(
    request_: ProduceRequest, error: type[Exception]
) -> None:
    broker = Broker()

    with pytest.raises(error):
        broker.ask(request_)

    assert not broker.stored
    broker.ask(ProduceRequest("clicks", 0, TEST))
    assert broker.fetched(FetchRequest("clicks", 0, 0, 99)) == FetchResponse(TEST)


def test_the_other_parts_of_a_multiproduce_are_appended_all_the_same() -> None:
    broker = Broker()
    parts = [
        ProduceRequest("clicks", 0, TEST),
        ProduceRequest("clicks", 1, DAMAGED),
        ProduceRequest("views", 0, FORTY_TWO),
    ]

    with pytest.raises(InvalidMessage):
        broker.ask(MultiProduceRequest(tuple(parts)))

    assert [pair[0] for pair in broker.stored] == ["clicks", "views"]


def test_a_disk_that_fails_is_not_survived() -> None:
    """The process ends by it; meanwhile the log takes nothing, and its lock is free."""
    broker = Broker()
    broker.ask(ProduceRequest("clicks", 0, TEST))
    broker.storage.failing.append((Append, DiskFailed))

    with pytest.raises(DiskFailed):
        broker.ask(ProduceRequest("clicks", 0, TEST))
    with pytest.raises(LogStopped):
        broker.ask(ProduceRequest("clicks", 0, TEST))


# --- many at once ----------------------------------------------------------------------


@pytest.mark.parametrize("turns", ["01", "0011", "001", "0111"])
def test_requests_that_are_served_at_once_do_not_meddle(turns: str) -> None:
    """Without the lock a log would find two at work, and say so."""
    broker = Broker()
    serving = [
        broker.steps(broker.serving.answer(ProduceRequest("clicks", 0, message_set)))
        for message_set in (TEST * 3, FORTY_TWO * 3)
    ]
    running = dict(enumerate(serving))
    for at in range(1000):
        number = int(turns[at % len(turns)])
        if number in running and next(running[number], None) is None:
            del running[number]
        if not running:
            break

    read = broker.fetched(FetchRequest("clicks", 0, 0, 1000)).messages

    assert read in (TEST * 3 + FORTY_TWO * 3, FORTY_TWO * 3 + TEST * 3)
    assert not any(broker.queues.values())


def test_what_is_old_is_deleted_between_appends() -> None:
    broker = Broker(log_file_size=20, log_retention_size=40)
    for _ in range(10):
        broker.ask(ProduceRequest("clicks", 0, TEST))

    deleting = broker.steps(broker.serving.delete_old())
    for _ in range(1000):
        if next(deleting, None) is None:
            break

    log = broker.logs.get("clicks", 0)
    assert log is not None
    assert (log.start, log.end) == (84, 140)
    assert not any(broker.queues.values())


def test_messages_of_which_only_the_sizes_matter_are_served_alike() -> None:
    broker = Broker()
    some = whole_series(Series("web/0", 0, 5, 90))

    broker.ask(ProduceRequest("clicks", 0, some))
    reply: Reply = broker.ask(FetchRequest("clicks", 0, 100, 250))

    assert [part.size_bytes for part in reply.parts] == [250]
    assert broker.stored == [("clicks", 0, some, AppendResult(0, 5, 500))]


def test_of_what_is_appended_together_each_is_reported_when_it_can_be_read() -> None:
    """And between two flushes it is another one's turn."""
    broker = Broker(log_flush_interval=2)
    several = iter([ProduceRequest("clicks", 0, TEST)] * 5)
    count, work = broker.serving.prepare_next(several)

    seen = [
        (type(effect), broker.logs.get("clicks", 0).high_watermark, len(broker.stored))  # type: ignore[union-attr]
        for effect in broker.steps(work())
        if isinstance(effect, Put | Take) and effect.queue == "lock/clicks-0"
    ]

    assert count == 5
    assert seen == [
        *((Put, 0, 0), (Take, 28, 0)),
        *((Put, 28, 2), (Take, 56, 2)),
        *((Put, 56, 4), (Take, 56, 4)),
    ]
    assert [appended.offset for *_, appended in broker.stored] == [0, 14, 28, 42, 56]


def test_no_more_than_a_number_are_looked_at_together() -> None:
    broker = Broker()
    several = iter([ProduceRequest("clicks", 0, TEST)] * (3 * TOGETHER))

    count, _ = broker.serving.prepare_next(several)

    assert count == TOGETHER
    assert len([*several]) == 2 * TOGETHER
