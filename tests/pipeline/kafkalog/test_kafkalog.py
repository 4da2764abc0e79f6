"""Logs are read from their files: every message once, however they are split."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.log.kafka_logs import (
    LOOK_ALIKES,
    BuiltLog,
    Row,
    Sent,
    built,
    logs,
    payloads,
    plain,
)
from watchkeeper.model.log.format import message_08, message_set_07
from watchkeeper.model.log.format.codecs import Codec, compress
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_08 import KeyedMessage
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.logs import cut, read
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.kafkalog.read_limits import bytes_of, messages_of, within
from watchkeeper.pipeline.kafkalog.scan.checksums import are_right
from watchkeeper.pipeline.kafkalog.scan.entry_scan import chain
from watchkeeper.pipeline.kafkalog.scan.folders import logs_in
from watchkeeper.pipeline.kafkalog.scan.formats import FORMATS
from watchkeeper.pipeline.kafkalog.scan.segment_scan import walk
from watchkeeper.pipeline.kafkalog.scan.split_reader import COLUMNS, Asked, Counts, OnCorrupt
from watchkeeper.pipeline.kafkalog.scan.splits import LogRange, bundles

few = settings(max_examples=40)
"""Each example writes and reads files."""
ROW = ("offset", "next_offset", "key", "payload", "codec")
forms = pytest.mark.parametrize("form", ["0.7", "0.8"])


@contextmanager
def on_disk(log: BuiltLog) -> Any:
    """The log as files, as it is listed."""
    with TemporaryDirectory() as folder:
        log.write(Path(folder) / "clicks-0")
        (found,) = logs_in(folder)
        yield found


def rows_in(
    splits: Iterable[LogRange], on_corrupt: OnCorrupt = "fail", **options: Any
) -> list[Row]:
    """The rows of some splits."""
    how = Asked(tuple(COLUMNS), on_corrupt, **options)
    return [
        Row(*(row[name] for name in ROW))
        for split in splits
        for batch in read(split, how, Counts())
        for row in batch.to_pylist()
        if row["crc_ok"]
    ]


# --- every message once ----------------------------------------------------------------


@forms
@few
@given(data=st.data(), split_bytes=st.integers(1, 400), piece_bytes=st.integers(30, 300))
def test_any_split_of_any_log_gives_each_message_once(
    form: str, data: st.DataObject, split_bytes: int, piece_bytes: int
) -> None:
    log = data.draw(logs(form))
    with on_disk(log) as found:
        contents = cut(found, split_bytes=split_bytes)
        assert rows_in(contents.splits, piece_bytes=piece_bytes) == log.rows
        assert contents.end == log.end
        assert contents.torn_bytes == 0
        ends = [split.end for split in contents.splits]
        assert all(split.begin < split.end for split in contents.splits)
        assert len(set(zip([split.path for split in contents.splits], ends, strict=True))) == len(
            ends
        )


@forms
@few
@given(data=st.data(), split_bytes=st.integers(1, 400))
def test_a_log_is_read_in_parts_that_meet(
    form: str, data: st.DataObject, split_bytes: int
) -> None:
    """A reader that stops at the end of an entry goes on there: no message missed or repeated."""
    log = data.draw(logs(form))
    ends = sorted({log.start, log.end, *(row.next_offset for row in log.rows)})
    stops = sorted({log.start, *data.draw(st.lists(st.sampled_from(ends), max_size=4))})
    with on_disk(log) as found:
        read_rows: list[Row] = []
        for low, high in zip(stops, [*stops[1:], None], strict=True):
            part = cut(found, low, high, split_bytes=split_bytes, are_boundaries=True)
            read_rows += rows_in(part.splits)
        assert read_rows == log.rows


@forms
@few
@given(data=st.data())
def test_any_range_of_offsets_is_found(form: str, data: st.DataObject) -> None:
    """A range that begins or ends within an entry takes all of it in 0.7, and no more."""
    log = data.draw(logs(form))
    low = data.draw(st.integers(log.start, log.end + 2))
    high = data.draw(st.integers(low, log.end + 5))
    with on_disk(log) as found:
        got = rows_in(cut(found, low, high).splits)
    due = log.messages(low, high)
    if form == "0.8":
        assert got == due
    else:
        assert [row for row in got if low <= row.offset < high] == due
        assert len({row.offset for row in got} - {row.offset for row in due}) <= 1


def test_small_splits_are_read_together() -> None:
    splits = cut_of(built([plain(b"x" * 100)] * 10), split_bytes=1)
    together = bundles(splits, bundle_bytes=250)
    assert [split for some in together for split in some] == splits
    assert [len(some) for some in together] == [2] * 5


def cut_of(log: BuiltLog, **how: Any) -> list[Any]:
    with on_disk(log) as found:
        return list(cut(found, **how).splits)


# --- entries, without a step for each --------------------------------------------------


def stepped(data: bytes, form: str) -> list[int]:
    """What `chain` gives, by going from entry to entry."""
    found = [0]
    while found[-1] < (end := FORMATS[form].step(data, found[-1])) <= len(data):
        found.append(end)
    return found


@forms
@given(data=st.data(), cut_bytes=st.integers(0, 40))
def test_the_chain_is_what_stepping_gives(form: str, data: st.DataObject, cut_bytes: int) -> None:
    log = data.draw(logs(form))
    for segment in log.segments.values():
        contents = segment[: len(segment) - cut_bytes]
        assert chain(contents, FORMATS[form]).tolist() == stepped(contents, form)


@forms
@given(data=st.lists(st.one_of(st.binary(max_size=40), st.sampled_from(LOOK_ALIKES))))
def test_the_chain_of_anything_is_what_stepping_gives(form: str, data: list[bytes]) -> None:
    assert chain(b"".join(data), FORMATS[form]).tolist() == stepped(b"".join(data), form)


@pytest.mark.parametrize("magic", [0, 1])
def test_long_rows_of_what_is_unusual_are_stepped_through(magic: int) -> None:
    """Neither a thousand messages of magic 0 nor a thousand look-alikes stop the chain."""
    data = message_set_07.encode([Message.of(LOOK_ALIKES[0], magic=magic)] * 3000)
    assert chain(data, FORMATS["0.7"]).tolist() == stepped(data, "0.7")


# --- checksums -------------------------------------------------------------------------


@given(st.lists(payloads, max_size=40), st.randoms(use_true_random=False))
def test_one_wrong_checksum_is_found(messages: list[bytes], chance: random.Random) -> None:
    offsets = np.concatenate([[0], np.cumsum([len(message) for message in messages])]).astype(
        np.int64
    )
    stored = np.array([crc32(message) for message in messages], np.uint32)
    assert are_right(b"".join(messages), offsets, stored) is None
    if messages:
        wrong = chance.randrange(len(messages))
        stored[wrong] ^= np.uint32(1 << chance.randrange(32))
        found = are_right(b"".join(messages), offsets, stored)
        assert found is not None
        assert np.flatnonzero(~found).tolist() == [wrong]


def test_checksums_of_large_messages_are_right() -> None:
    """Blocks of 2**16 bytes, of which some hold no end of a message."""
    chance = random.Random(1)
    messages = [chance.randbytes(size) for size in (5, 200_000, 0, 65_536, 70_001, 1)]
    offsets = np.concatenate([[0], np.cumsum([len(message) for message in messages])]).astype(
        np.int64
    )
    stored = np.array([crc32(message) for message in messages], np.uint32)
    assert are_right(b"".join(messages), offsets, stored) is None


# --- torn ends -------------------------------------------------------------------------


@forms
@few
@given(data=st.data())
def test_a_torn_end_is_left_for_the_next_time(form: str, data: st.DataObject) -> None:
    """Cut anywhere, a log gives what is whole; when the rest has come, that and no more."""
    log = data.draw(logs(form).filter(lambda log: bool(log.rows)))
    last = max(log.segments)
    contents = log.segments[last]
    size_bytes = data.draw(st.integers(0, len(contents)))
    torn = BuiltLog(form, log.start, {**log.segments, last: contents[:size_bytes]})
    with TemporaryDirectory() as folder:
        torn.write(Path(folder) / "clicks-0")
        (found,) = logs_in(folder)
        first = cut(found)
        got = rows_in(first.splits)
        ends = [
            entry.end
            for entry in log.entries
            if entry.segment == last and entry.end <= size_bytes
        ]
        assert first.torn_bytes == size_bytes - max(ends, default=0)
        log.write(Path(folder) / "clicks-0")
        (found,) = logs_in(folder)
        rest = cut(found, first.end, are_boundaries=True)
        assert got + rows_in(rest.splits) == log.rows


@forms
def test_a_last_message_with_a_wrong_checksum_counts_as_torn(form: str) -> None:
    """A broker that starts after a crash cuts it off."""
    log = built([plain(b"one", b"two", b"three")], form)
    (start,) = log.segments
    log.segments[start] = log.segments[start][:-1] + b"!"
    with on_disk(log) as found:
        assert [row.payload for row in rows_in(cut(found).splits)] == [b"one", b"two"]
        assert cut(found).end == log.rows[1].next_offset


def test_a_last_message_with_a_strange_offset_counts_as_torn() -> None:
    """No checksum covers it, and who went on behind it would miss what comes."""
    for codec in Codec:
        messages = (KeyedMessage(None, b"one"), KeyedMessage(None, b"two"))
        log = built([plain(b"first"), Sent(messages, codec)], "0.8")
        at = log.entries[-1].begin
        data = log.segments[0]
        log.segments[0] = data[:at] + message_08.OFFSET.pack(77) + data[at + 8 :]
        with on_disk(log) as found:
            assert cut(found).end == (2 if codec is Codec.NONE else 1)


# --- damage ----------------------------------------------------------------------------


def rows_of(log: BuiltLog, without: int) -> list[Row]:
    """The rows that are due of all entries but one."""
    return [row for at, entry in enumerate(log.entries) if at != without for row in entry.rows]


@forms
@few
@given(data=st.data())
def test_damage_costs_what_is_damaged(form: str, data: st.DataObject) -> None:
    """A changed message is not delivered as if it were right, and all others are."""
    log = data.draw(logs(form).filter(lambda log: len(log.entries) > 1))
    hurt = data.draw(st.integers(0, len(log.entries) - 2))
    segment, begin, end, _ = log.entries[hurt]
    covered = begin + (11 if form == "0.7" else 17)
    assume(covered < end)
    changed = bytearray(log.segments[segment])
    changed[data.draw(st.integers(covered, end - 1))] ^= 1 << data.draw(st.integers(0, 7))
    log.segments[segment] = bytes(changed)
    with on_disk(log) as found:
        splits = cut(found).splits
        with pytest.raises(PipelineProblem, match="is damaged at offset"):
            rows_in(splits)
        assert rows_in(splits, "skip") == rows_of(log, hurt)
        assert rows_in(splits, "quarantine") == rows_of(log, hurt)


@forms
@few
@given(data=st.data(), noise=st.binary(min_size=1, max_size=60))
def test_what_is_no_message_is_passed_over(form: str, data: st.DataObject, noise: bytes) -> None:
    """Garbage in place of an entry costs that one; what follows is read, and nothing twice."""
    log = data.draw(logs(form).filter(lambda log: len(log.entries) > 1))
    hurt = data.draw(st.integers(0, len(log.entries) - 2))
    segment, begin, end, _ = log.entries[hurt]
    garbage = b"\xff" + (noise * end)[: end - begin - 1].replace(b"\0", b"\1")
    contents = log.segments[segment]
    log.segments[segment] = contents[:begin] + garbage + contents[end:]
    with on_disk(log) as found:
        splits = cut(found).splits
        assert rows_in(splits, "skip", gaps="allow") == rows_of(log, hurt)
        kept = [row for row in every_row(splits, "quarantine") if not row["crc_ok"]]
        assert b"".join(row["payload"] for row in kept) == garbage
        assert {row["codec"] for row in kept} == {None}


def every_row(splits: Iterable[LogRange], on_corrupt: OnCorrupt) -> list[dict[str, Any]]:
    """All rows, with all columns, also of what cannot be trusted."""
    how = Asked(tuple(COLUMNS), on_corrupt, "allow")
    batches = [batch for split in splits for batch in read(split, how, Counts())]
    return [row for batch in batches for row in batch.to_pylist()]


UNKNOWN = {
    "0.7": message_set_07.encode([Message.of(b"what", codec=Codec.LZ4)]),
    "0.8": message_08.encode([KeyedMessage(None, b"what", 4)], 1),
}
"""In 0.7 lz4 is unknown; 0.8 has no codec 4."""


@forms
def test_an_unknown_codec_can_be_skipped(form: str) -> None:
    log = built([plain(b"first"), plain(b"other"), plain(b"third")], form)
    _, begin, end, _ = log.entries[1]
    log.segments[0] = log.segments[0][:begin] + UNKNOWN[form] + log.segments[0][end:]
    number = Codec.LZ4 if form == "0.7" else 4
    with on_disk(log) as found:
        splits = cut(found).splits
        with pytest.raises(PipelineProblem, match=f"is not known here .codec {int(number)}; "):
            rows_in(splits)
        counts = Counts()
        how = Asked(tuple(COLUMNS), "skip", "allow")
        batches = [batch for split in splits for batch in read(split, how, counts)]
        rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["payload"] for row in rows] == [b"first", b"third"]
    assert counts.corrupt == 1


@forms
def test_every_damaged_message_of_a_split_is_counted(form: str) -> None:
    """A split is read piece by piece, and damage in one piece does not hide that in another."""
    log = built([plain(b"message %d" % at) for at in range(40)], form)
    contents = bytearray(log.segments[0])
    for hurt in (3, 30, 31):
        contents[log.entries[hurt].end - 1] ^= 1
    log.segments[0] = bytes(contents)
    counts = Counts()
    how = Asked(tuple(COLUMNS), "skip", piece_bytes=100)
    with on_disk(log) as found:
        (split,) = cut(found).splits
        for _ in read(split, how, counts):
            pass

    assert (counts.messages, counts.corrupt) == (37, 3)


# --- 0.8: offsets, gaps, the index -----------------------------------------------------


def keyed(*payloads: bytes) -> Sent:
    return Sent(tuple(KeyedMessage(b"k", payload) for payload in payloads), Codec.GZIP)


def test_what_is_missing_between_messages_is_reported() -> None:
    """In 0.8 the offsets of messages follow one another, or the topic was compacted."""
    log = built([plain(b"a", b"b", b"c", b"d")], "0.8")
    _, begin, end, _ = log.entries[1]
    log.segments[0] = log.segments[0][:begin] + log.segments[0][end:]
    with on_disk(log) as found:
        splits = cut(found).splits
        with pytest.raises(PipelineProblem, match="has no message of offset 1: 2 comes in its"):
            rows_in(splits)
        assert [row.offset for row in rows_in(splits, gaps="allow")] == [0, 2, 3]


def test_a_wrapper_with_a_wrong_offset_is_not_trusted() -> None:
    log = built([keyed(b"a", b"b"), keyed(b"c"), plain(b"d")], "0.8")
    log.segments[0] = message_08.OFFSET.pack(7) + log.segments[0][8:]
    with on_disk(log) as found, pytest.raises(PipelineProblem, match="that of the last message"):
        rows_in(cut(found).splits, gaps="allow")


def test_a_wrapper_in_a_wrapper_is_opened() -> None:
    """No producer makes one, but `model.log` reads it, and so does this."""
    inner = message_set_07.wrap([Message.of(b"a"), Message.of(b"b")], Codec.GZIP)
    nested = message_set_07.wrap([Message.of(b"x")], Codec.SNAPPY)
    outer = Message.of(compress(Codec.SNAPPY, inner), codec=Codec.SNAPPY)
    data = nested + message_set_07.encode([outer]) + nested
    log = BuiltLog("0.7", 0, {0: data})
    with on_disk(log) as found:
        got = rows_in(cut(found).splits)
    due = list(message_set_07.messages_in(data))
    assert [(row.offset, row.next_offset, row.payload) for row in got] == [
        (message.offset, message.next_offset, message.payload) for message in due
    ]


def test_an_index_is_an_advice(tmp_path: Path) -> None:
    """A right one is followed, a wrong one costs time, and none is needed."""
    log = built([plain(*(b"m%d" % at for at in range(100)))], "0.8", 500)
    folder = log.write(tmp_path / "clicks-0")
    places = [(at * 10, log.entries[at * 10].begin) for at in range(10)]
    indices = {
        "right": places,
        "none": [],
        "of something else": [(at, place + 3) for at, place in places],
        "too far": [(0, log.entries[90].begin)],
        "beyond": [(10, 1 << 30)],
    }
    (found,) = logs_in(tmp_path)
    begins = {}
    for name, pairs in indices.items():
        (folder / f"{500:020d}.index").write_bytes(np.array(pairs, ">i4").tobytes() + bytes(80))
        splits = cut(found, 555, 558).splits
        assert [row.offset for row in rows_in(splits)] == [555, 556, 557]
        with walk(found, found.segments[0], None) as way:
            begins[name] = way.place_of(555, is_boundary=True)
    assert begins == dict.fromkeys(begins, 0) | {"right": log.entries[50].begin}


# --- limits ----------------------------------------------------------------------------


@forms
@few
@given(data=st.data(), limit=st.integers(1, 40))
def test_a_limit_in_messages_is_kept(form: str, data: st.DataObject, limit: int) -> None:
    """Batch after batch all is read, each batch at most so much or one entry."""
    several = data.draw(st.lists(logs(form, max_size=6), min_size=1, max_size=3))
    with TemporaryDirectory() as home:
        for at, log in enumerate(several):
            log.write(Path(home) / f"clicks-{at}")
        found = logs_in(home)
        place = {item.name: item.start for item in found}
        counted = dict.fromkeys(place, 0)
        while True:
            reached = within(found, place, limit, messages_of)
            sizes = {
                item.name: len(
                    rows_in(
                        cut(
                            item, place[item.name], reached[item.name], are_boundaries=True
                        ).splits
                    )
                )
                for item in found
            }
            if reached == place:
                break
            entries = sum(place[name] != reached[name] for name in place)
            assert sum(sizes.values()) <= limit or entries == 1
            counted = {name: counted[name] + size for name, size in sizes.items()}
            place = reached
        assert sorted(counted.values()) == sorted(len(log.rows) for log in several)


def test_a_limit_is_shared_out() -> None:
    """What a small log leaves is there for the large ones; none has to wait for another."""
    with TemporaryDirectory() as home:
        for at, count in enumerate((1, 50, 50)):
            built([plain(b"x" * 90)] * count).write(Path(home) / f"clicks-{at}")
        found = logs_in(home)
        place = {item.name: 0 for item in found}
        reached = within(found, place, 2100, bytes_of)
        assert reached == {"0/clicks-0": 100, "0/clicks-1": 1000, "0/clicks-2": 1000}
        assert within(found, place, 30, bytes_of) == place | {"0/clicks-2": 100}


# --- folders ---------------------------------------------------------------------------

HELLO = built([plain(b"hello")]).segments[0]
HELLO_08 = built([plain(b"hello")], "0.8").segments[0]


def laid(home: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return home


def file_07(start: int = 0) -> str:
    return f"{start:020d}.kafka"


BAD_FOLDERS: dict[str, tuple[dict[str, bytes], str]] = {
    "nothing": ({"readme": b""}, "there is no log in"),
    "no segments": ({"clicks-0/readme": b""}, "there is no log in"),
    "two formats in a log": (
        {f"clicks-0/{file_07()}": HELLO, "clicks-0/0.log": HELLO_08},
        r"holds segments of 0.7 \(\*.kafka\) and of 0.8",
    ),
    "two formats": (
        {f"clicks-0/{file_07()}": HELLO, "views-0/0.log": HELLO_08},
        "clicks-0 of broker 0 is of Kafka 0.7 and views-0 of broker 0 of 0.8",
    ),
    "a gap": (
        {f"clicks-0/{file_07()}": HELLO, f"clicks-0/{file_07(99)}": HELLO},
        "ends at 15 and the next segment, .* begins at 99: a segment is missing",
    ),
    "an overlap": (
        {f"clicks-0/{file_07()}": HELLO, f"clicks-0/{file_07(9)}": HELLO},
        "ends at 15 and the next segment, .* begins at 9",
    ),
    "one name twice": (
        {"clicks-0/0.kafka": b"", f"clicks-0/{file_07()}": b""},
        "begin at the same offset",
    ),
    "one broker twice": (
        {f"2/clicks-0/{file_07()}": HELLO, f"broker-2/clicks-0/{file_07()}": HELLO},
        "clicks-0 of broker 2 is there twice",
    ),
}


@pytest.mark.parametrize("name", BAD_FOLDERS)
def test_what_is_no_folder_of_logs_is_refused(name: str, tmp_path: Path) -> None:
    files, message = BAD_FOLDERS[name]
    with pytest.raises(PipelineProblem, match=message):
        logs_in(laid(tmp_path, files))


def test_a_gap_can_be_allowed(tmp_path: Path) -> None:
    files = {f"clicks-0/{file_07()}": HELLO, f"clicks-0/{file_07(99)}": HELLO}
    (found,) = logs_in(laid(tmp_path, files), gaps="allow")
    assert [row.offset for row in rows_in(cut(found).splits)] == [0, 99]


FOLDERS: dict[str, tuple[dict[str, bytes], list[str]]] = {
    "of a broker": (
        {f"clicks-0/{file_07()}": b"", f"a-b-1/{file_07()}": b""},
        ["0/a-b-1", "0/clicks-0"],
    ),
    "of brokers": (
        {f"1/clicks-0/{file_07()}": b"", f"broker_20/clicks-0/{file_07()}": b""},
        ["1/clicks-0", "20/clicks-0"],
    ),
    "with properties": (
        {f"1/clicks-0/{file_07()}": b"", "1/meta.properties": b"version=0\nbroker.id=7\n"},
        ["7/clicks-0"],
    ),
    "replicas": (
        {"1/clicks-0/0.log": b"", "2/clicks-0/0.log": b"", "2/clicks-1/0.log": b""},
        ["1/clicks-0", "2/clicks-1"],
    ),
    "other files": (
        {
            f"clicks-0/{file_07()}": b"",
            "clicks-0/0.index": b"",
            "recovery-point": b"",
            "x/y": b"",
        },
        ["0/clicks-0"],
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_logs_are_found(name: str, tmp_path: Path) -> None:
    files, due = FOLDERS[name]
    assert [log.name for log in logs_in(laid(tmp_path, files))] == due


def test_a_broker_can_be_named_and_replicas_be_read(tmp_path: Path) -> None:
    laid(tmp_path, {"1/clicks-0/0.log": b"", "2/clicks-0/0.log": b""})
    assert [log.name for log in logs_in(tmp_path / "1" / "clicks-0")] == ["1/clicks-0"]
    assert [log.name for log in logs_in(tmp_path / "1", broker=9)] == ["9/clicks-0"]
    both = logs_in(tmp_path, replicas="all")
    assert [log.name for log in both] == ["1/clicks-0", "2/clicks-0"]


FOREIGN = {
    "0.8 in a file of 0.7": (f"clicks-0/{file_07()}", HELLO_08, "holds messages of 0.8"),
    "0.7 in a file of 0.8": ("clicks-0/0.log", HELLO * 3, "holds messages of 0.7"),
    "0.11": (
        "clicks-0/0.log",
        bytes(8) + b"\0\0\0\x40" + bytes(4) + b"\2" + bytes(60),
        "magic 2",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_messages_of_another_format_are_refused(name: str, tmp_path: Path) -> None:
    path, data, message = FOREIGN[name]
    (found,) = logs_in(laid(tmp_path, {path: data}))
    with pytest.raises(PipelineProblem, match=message):
        cut(found)


def test_a_file_that_has_gone_or_shrunk_is_reported(tmp_path: Path) -> None:
    path = built([plain(b"a" * 50, b"b")]).write(tmp_path / "clicks-0") / file_07()
    (found,) = logs_in(tmp_path)
    splits = cut(found).splits
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(PipelineProblem, match="has become shorter than"):
        rows_in(splits)
    path.unlink()
    with pytest.raises(PipelineProblem, match="is not there: it was deleted"):
        rows_in(splits)


# --- options ---------------------------------------------------------------------------

BAD_OPTIONS: dict[str, tuple[dict[str, str], str]] = {
    "no folder": ({}, "needs the folder"),
    "a slip": ({"path": "x", "topic": "a"}, "no option 'topic'; did you mean topics?"),
    "a policy": ({"path": "x", "corrupt": "ignore"}, "expected fail or skip or quarantine"),
    "a number": ({"path": "x", "broker": "-1"}, "expected a whole number from 0 on"),
    "nothing at all": ({"path": "x", "splitBytes": "0"}, "expected a whole number from 1 on"),
    "two limits": (
        {"path": "x", "maxBytesPerTrigger": "9", "maxMessagesPerTrigger": "9"},
        "give one",
    ),
    "elsewhere": ({"path": "hdfs://host/logs"}, "is no folder of this machine"),
    "a beginning": (
        {"path": "x", "startingOffsets": '{"a": "b"}'},
        "expected earliest, latest or",
    ),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_options_that_are_not_understood_are_refused(name: str) -> None:
    given_options, message = BAD_OPTIONS[name]
    with pytest.raises(PipelineProblem, match=message):
        options_of(given_options)


def test_options_are_read_whatever_their_case() -> None:
    message = {
        "PATH": "file:/logs%20here",
        "Topics": "a, b",
        "SPLITBYTES": "7",
        "corrupt": "SKIP",
    }
    found = options_of(message)
    assert (found.folder, found.topics, found.split_bytes, found.on_corrupt) == (
        "/logs here",
        ("a", "b"),
        7,
        "skip",
    )


def test_a_topic_that_is_not_there_is_reported(tmp_path: Path) -> None:
    laid(tmp_path, {f"clicks-0/{file_07()}": b""})
    with pytest.raises(
        PipelineProblem, match="has no log of topic views; it has those of clicks"
    ):
        options_of({"path": str(tmp_path), "topics": "views"}).logs()
