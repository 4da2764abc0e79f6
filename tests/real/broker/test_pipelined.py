"""However requests come over a connection, a broker does what it would do one after the other."""

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

from model.log.errors import LogError
from model.log.logs import Logs
from model.log.requests import (
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
from model.log.settings import BrokerLogSettings, LogSettings
from model.log.storage import Flush
from model.serving import Reply, Serving
from real import answering
from real.broker import HOST, Broker
from real.broker_settings import BrokerSettings
from real.disk_worker import SLOW_S
from real.storage import FileStorage
from tests.log_messages import message_set
from tests.log_sets import damaged
from tests.test_serving import Broker as OneByOne

TOPICS = ("clicks", "views")
WAIT_S = 20.0

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
    """Whether it is answered."""
    return not isinstance(request, ProduceRequest | MultiProduceRequest)


def one_by_one(asked: list[Request], log: LogSettings) -> tuple[list[Response], dict[str, bytes]]:
    """What is answered up to the first that is refused, and what the logs hold then."""
    broker = OneByOne()
    broker.logs = Logs(BrokerLogSettings(default=log))
    broker.serving = Serving(broker.logs)
    broker.storage.run(broker.logs.start())
    responses = []
    for request in asked:
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
    """Files whose flushes take some time, so that there is something to look ahead for."""

    def answer(self, ask: Any) -> Any:
        """Do it, and not at once."""
        if isinstance(ask, Flush):
            time.sleep(0.001)
        return super().answer(ask)


async def pipelined(
    asked: list[Request], cuts: list[int], root: Path, log: LogSettings, *, is_quick: bool
) -> tuple[list[Response], dict[str, bytes], bool]:
    """The same by a broker that gets all of it at once, or in these parts.

    And whether the connection was reset, as it is where something is left that was not read:
    then the last answers may be lost on their way.
    """
    settings = BrokerSettings(
        root, broker_id=0, port=0, logs=BrokerLogSettings(default=log, flush_check_ms=10**7)
    )
    storage = FileStorage(root) if is_quick else Slow(root)
    broker = Broker(settings, lambda note: None, storage=storage)
    broker._disk._average_s[Flush] = 0.0 if is_quick else SLOW_S
    await broker.open()
    try:
        reader, writer = await asyncio.open_connection(HOST, broker.port)
        data = b"".join(map(encode_request, asked))
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            writer.write(data[begin:end])
            await asyncio.sleep(0)
        writer.write_eof()
        answered, is_reset = await asyncio.wait_for(everything(reader), WAIT_S)
        writer.close()
    finally:
        await broker.close()
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.kafka")}
    return decoded(asked, answered), files, is_reset


async def everything(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """All that comes, and whether the connection was reset in the end."""
    parts = []
    try:
        while part := await reader.read(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        return b"".join(parts), True
    return b"".join(parts), False


def decoded(asked: list[Request], answered: bytes) -> list[Response]:
    """The responses that are in what came."""
    responses = []
    for request in filter(has_response, asked):
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
    asked=requests,
    flush_every=st.sampled_from([1, 5, 60, 10**9]),
    segment_bytes=st.sampled_from([500, 10**9]),
    cut=st.lists(st.floats(0, 1), max_size=5),
)
def test_what_comes_at_once_is_served_as_if_one_after_the_other(
    *,
    is_quick: bool,
    asked: list[Request],
    flush_every: int,
    segment_bytes: int,
    cut: list[float],
) -> None:
    """Whatever is refused, and wherever it is cut: the same answers, and the same files."""
    log = LogSettings(flush_messages=flush_every, segment_bytes=segment_bytes)
    size_bytes = sum(len(encode_request(one)) for one in asked)
    cuts = sorted(int(place * size_bytes) for place in cut)
    with tempfile.TemporaryDirectory() as folder:
        responses, files, is_reset = asyncio.run(
            pipelined(asked, cuts, Path(folder) / "logs", log, is_quick=is_quick)
        )

    expected, expected_files = one_by_one(asked, log)
    assert files == expected_files
    assert responses == (expected[: len(responses)] if is_reset else expected)


def test_what_fails_ahead_of_its_turn_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the partition whose flush is waited for then, and not the end of the broker."""
    prepare_next = Serving.prepare_next

    def short_of_memory(self: Serving, asked: Iterator[Request]) -> Any:
        first = next(asked)
        if isinstance(first, ProduceRequest) and first.topic == "views":
            raise MemoryError
        return prepare_next(self, chain((first,), asked))

    monkeypatch.setattr(Serving, "prepare_next", short_of_memory)
    one = message_set("one")
    logs = BrokerLogSettings(default=LogSettings(flush_messages=1))

    async def closes(broker: Broker, *asked: Request) -> bool:
        reader, writer = await asyncio.open_connection(HOST, broker.port)
        writer.write(b"".join(map(encode_request, asked)))
        answered, _ = await everything(reader)
        writer.close()
        return not answered

    async def main() -> None:
        settings = BrokerSettings(tmp_path, broker_id=0, port=0, logs=logs)
        broker = Broker(settings, lambda note: None, storage=Slow(tmp_path))
        await broker.open()
        clicks, views = ProduceRequest("clicks", 0, one), ProduceRequest("views", 0, one)
        for _ in range(3):
            assert await closes(broker, clicks, views)
        assert broker.logs.all()[0].readable_end == 3 * len(one)
        await broker.close()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_what_was_read_to_see_whether_it_goes_along_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of requests for two topics in turn none goes with the one before it."""
    read: list[int] = []
    monkeypatch.setattr(
        answering, "decode_request", lambda frame: read.append(1) or decode_request(frame)
    )
    asked: list[Request] = [
        *(ProduceRequest(TOPICS[at % 2], 0, message_set("one")) for at in range(40)),
        OffsetsRequest("clicks", 0, LATEST, 1),
    ]
    log = LogSettings(flush_messages=1)

    found = asyncio.run(pipelined(asked, [], tmp_path / "logs", log, is_quick=True))

    assert found == (*one_by_one(asked, log), False)
    assert len(read) == len(asked)
