"""Pipelined requests have the same effect as requests one after the other."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.clients.test_request_handler import Broker as OneByOne
from tests.support.log.message_sets import damaged
from tests.support.log.messages import message_set
from tests.support.patience import PATIENCE_S
from watchkeeper.model.broker.request_handler import Reply, Serving
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.requests import (
    LATEST,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
)
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.settings import BrokerLogSettings, LogSettings
from watchkeeper.model.log.storage import Flush
from watchkeeper.real.broker import connection
from watchkeeper.real.broker.disk_worker import SLOW_S
from watchkeeper.real.broker.server import HOST, Broker
from watchkeeper.real.broker.settings import BrokerSettings
from watchkeeper.real.storage.file_storage import FileStorage

TOPICS = ("clicks", "views")

whole = st.lists(st.binary(max_size=40), max_size=12).map(lambda some: message_set(*some))
many = st.integers(40, 300).map(lambda count: message_set(*(b"%d" % at for at in range(count))))
produce = st.builds(
    ProduceRequest,
    st.sampled_from(TOPICS),
    st.just(0),
    st.one_of(whole, whole, whole, many, many, damaged()),
)
good = st.builds(ProduceRequest, st.sampled_from(TOPICS), st.just(0), st.one_of(whole, many))
fetch = st.builds(
    FetchRequest,
    st.sampled_from(TOPICS),
    st.just(0),
    st.sampled_from([0, 0, 14, 10**6]),
    st.sampled_from([10, 300, 10**6]),
)
looks = st.one_of(
    fetch,
    fetch,
    st.lists(fetch, min_size=1, max_size=3).map(lambda some: MultiFetchRequest(tuple(some))),
    st.builds(OffsetsRequest, st.sampled_from(TOPICS), st.just(0), st.just(LATEST), st.just(2)),
)
writes = st.one_of(
    good,
    good,
    good,
    st.lists(produce, min_size=1, max_size=3).map(lambda some: MultiProduceRequest(tuple(some))),
    produce,
)
requests = st.lists(st.one_of(writes, writes, looks), min_size=1, max_size=30)


def has_response(request: Request) -> bool:
    """Whether the request has a response."""
    return not isinstance(request, ProduceRequest | MultiProduceRequest)


def one_by_one(
    requests: list[Request], log: LogSettings
) -> tuple[list[Response], dict[str, bytes]]:
    """The answers up to the first refusal, and the contents of the logs then."""
    broker = OneByOne()
    broker.logs = LogManager(BrokerLogSettings(default=log))
    broker.serving = Serving(broker.logs)
    broker.storage.run(broker.logs.start())
    responses = []
    for request in requests:
        try:
            served = broker.ask(request)
        except LogError:
            break
        if isinstance(served, Reply):
            served = served.response(broker._bytes)
        if has_response(request):
            responses.append(served)
    return responses, {
        path: bytes(file.contents)  # type: ignore[arg-type]
        for path, file in broker.storage.files.items()
        if path.endswith(".kafka")
    }


class Slow(FileStorage):
    """Files with slow flushes, so that there is time to look ahead."""

    def answer(self, effect: Any) -> Any:
        """Perform the effect after a pause."""
        if isinstance(effect, Flush):
            time.sleep(0.001)
        return super().answer(effect)


async def pipelined(
    requests: list[Request], cuts: list[int], root: Path, log: LogSettings, *, is_quick: bool
) -> tuple[list[Response], dict[str, bytes], bool]:
    """The same by a broker that gets everything at once, or in these parts.

    Also returns whether the connection was reset, which happens if unread bytes are left: then
    the last answers may be lost.
    """
    settings = BrokerSettings(
        root, broker_id=0, port=0, logs=BrokerLogSettings(default=log, flush_check_ms=10**7)
    )
    storage = FileStorage(root) if is_quick else Slow(root)
    broker = Broker(settings, lambda notification: None, storage=storage)
    broker._disk._average_s[Flush] = 0.0 if is_quick else SLOW_S
    await broker.open()
    try:
        reader, writer = await asyncio.open_connection(HOST, broker.port)
        data = b"".join(map(encode_request, requests))
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            writer.write(data[begin:end])
            await asyncio.sleep(0)
        writer.write_eof()
        answered, is_reset = await asyncio.wait_for(everything(reader), PATIENCE_S)
        writer.close()
    finally:
        await broker.close()
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.kafka")}
    return decoded(requests, answered), files, is_reset


async def everything(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """Everything that arrives, and whether the connection was reset in the end."""
    parts = []
    try:
        while part := await reader.read(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        return b"".join(parts), True
    return b"".join(parts), False


def decoded(requests: list[Request], answered: bytes) -> list[Response]:
    """The responses in the received bytes."""
    responses = []
    for request in filter(has_response, requests):
        if not answered:
            break
        end = 4 + int.from_bytes(answered[:4])
        if len(answered) < end:
            break
        responses.append(decode_response(request, answered[4:end]))
        answered = answered[end:]
    return responses


@pytest.mark.parametrize("is_quick", [True, False])
@settings(max_examples=60, deadline=None)
@given(
    requests=requests,
    flush_every=st.sampled_from([1, 5, 60, 10**9]),
    segment_bytes=st.sampled_from([500, 10**9]),
    cut=st.lists(st.floats(0, 1), max_size=5),
)
def test_pipelined_requests_are_served_like_sequential_ones(
    *,
    is_quick: bool,
    requests: list[Request],
    flush_every: int,
    segment_bytes: int,
    cut: list[float],
) -> None:
    """Whatever is refused and wherever it is split: the same answers and the same files."""
    log = LogSettings(flush_messages=flush_every, segment_bytes=segment_bytes)
    size_bytes = sum(len(encode_request(request)) for request in requests)
    cuts = sorted(int(place * size_bytes) for place in cut)
    with tempfile.TemporaryDirectory() as folder:
        responses, files, is_reset = asyncio.run(
            pipelined(requests, cuts, Path(folder) / "logs", log, is_quick=is_quick)
        )

    expected, expected_files = one_by_one(requests, log)
    assert files == expected_files
    assert responses == (expected[: len(responses)] if is_reset else expected)


def test_a_failure_ahead_of_its_turn_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the partition whose flush is under way, nor the end of the broker."""
    prepare_next = Serving.prepare_next

    def short_of_memory(self: Serving, requests: Iterator[Request]) -> Any:
        first = next(requests)
        if isinstance(first, ProduceRequest) and first.topic == "views":
            raise MemoryError
        return prepare_next(self, chain((first,), requests))

    monkeypatch.setattr(Serving, "prepare_next", short_of_memory)
    message = message_set("one")
    logs = BrokerLogSettings(default=LogSettings(flush_messages=1))

    async def closes(broker: Broker, *requests: Request) -> bool:
        reader, writer = await asyncio.open_connection(HOST, broker.port)
        writer.write(b"".join(map(encode_request, requests)))
        answered, _ = await everything(reader)
        writer.close()
        return not answered

    async def main() -> None:
        settings = BrokerSettings(tmp_path, broker_id=0, port=0, logs=logs)
        broker = Broker(settings, lambda notification: None, storage=Slow(tmp_path))
        await broker.open()
        clicks, views = ProduceRequest("clicks", 0, message), ProduceRequest("views", 0, message)
        for _ in range(3):
            assert await closes(broker, clicks, views)
        assert broker.logs.all()[0].high_watermark == 3 * len(message)
        await broker.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_broker_that_closes_finishes_the_append_that_is_under_way(tmp_path: Path) -> None:
    """Its log is closed cleanly, with all of the message that waited for the disk."""
    message = message_set("one")
    logs = BrokerLogSettings(default=LogSettings(flush_messages=1))

    async def main() -> None:
        settings = BrokerSettings(tmp_path, broker_id=0, port=0, logs=logs)
        broker = Broker(settings, lambda notification: None, storage=Slow(tmp_path))
        await broker.open()
        _, writer = await asyncio.open_connection(HOST, broker.port)
        writer.write(encode_request(ProduceRequest("clicks", 0, message)))
        while not any(each.is_serving for each in broker._connections.values()):
            await asyncio.sleep(0)
        await broker.close()
        assert broker.logs.all()[0].high_watermark == len(message)
        writer.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_request_that_was_decoded_ahead_is_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that alternate between two topics are never combined."""
    read: list[int] = []
    monkeypatch.setattr(
        connection, "decode_request", lambda frame: read.append(1) or decode_request(frame)
    )
    requests: list[Request] = [
        *(ProduceRequest(TOPICS[at % 2], 0, message_set("one")) for at in range(40)),
        OffsetsRequest("clicks", 0, LATEST, 1),
    ]
    log = LogSettings(flush_messages=1)

    found = asyncio.run(pipelined(requests, [], tmp_path / "logs", log, is_quick=True))

    assert found == (*one_by_one(requests, log), False)
    assert len(read) == len(requests)
