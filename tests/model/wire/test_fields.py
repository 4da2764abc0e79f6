"""Text as servers in Java read and write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.zookeeper.wire_values import long_numbers, numbers, permissions, stats, texts
from watchkeeper.model.actor.events import Stat
from watchkeeper.model.actor.operations import OPEN, Acl
from watchkeeper.model.wire.fields import (
    FieldReader,
    Malformed,
    acl,
    boolean,
    buffer,
    int32,
    int64,
    java_string,
    stat,
    string,
    strings,
    text_of,
)

ENDS = "\ufffd"


@given(
    numbers,
    long_numbers,
    st.booleans(),
    st.none() | st.binary(),
    st.none() | texts,
    st.lists(texts),
    permissions,
    stats,
)
def test_fields_are_read_as_they_were_written(
    number: int,
    long_number: int,
    flag: bool,
    data: bytes | None,
    text: str | None,
    several: list[str],
    entries: tuple[Acl, ...],
    metadata: Stat,
) -> None:
    """Each field ends where the next begins."""
    reader = FieldReader(
        b"".join(
            [
                int32(number),
                int64(long_number),
                boolean(flag),
                buffer(data),
                string(text),
                strings(several),
                acl(entries),
                stat(metadata),
                b"rest",
            ]
        )
    )

    assert reader.int32() == number
    assert reader.int64() == long_number
    assert reader.boolean() is flag
    assert reader.buffer() == data
    assert reader.string() == text
    assert reader.paths() == tuple(several)
    assert reader.acl() == entries
    assert reader.stat() == metadata
    assert not reader.is_at_end
    assert reader.rest() == b"rest"
    assert reader.is_at_end


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xff", "a" + ENDS),
        (b"\xe2\x82", ENDS),  # cut
        (b"\xe2\x82b", ENDS + "b"),
        (b"\xc0\x80", ENDS * 2),  # longer than it need be
        (b"\xf4\x90\x80\x80", ENDS * 4),  # beyond the last character
        (b"\xed\xa0\xbd", ENDS),  # half a pair
        (b"\xed\xa0\xbd\xed\xb8\x80", ENDS * 2),
        (b"\xed\xa0x", ENDS + "x"),
        (b"\xf0\x9f\x98\x80", "\N{GRINNING FACE}"),
        (b"\0", "\0"),
    ],
)
def test_text_that_is_no_utf8_is_replaced_as_java_replaces_it(data: bytes, text: str) -> None:
    """The expected texts are those that Apache ZooKeeper 3.9.5 returned for a sync."""
    assert text_of(data) == text


@given(st.binary(max_size=12))
def test_any_bytes_are_some_text(data: bytes) -> None:
    """No text of a client breaks the reader, and what was read can be written."""
    text = text_of(data)

    assert text_of(text.encode()) == text
    assert FieldReader(java_string(text)).buffer() is not None


def test_a_server_writes_each_half_of_a_pair_by_itself() -> None:
    """A character beyond the basic plane has six bytes in what a server in Java sends."""
    assert java_string("/\N{GRINNING FACE}ü")[4:] == b"/\xed\xa0\xbd\xed\xb8\x80\xc3\xbc"
    assert java_string("/ü") == string("/ü")
    assert java_string(None) == string(None)
    assert string("\N{GRINNING FACE}")[4:] == "\N{GRINNING FACE}".encode()


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"\0\0\0", FieldReader.int32),
        (b"\0\0\0\0", FieldReader.int64),
        (b"", FieldReader.boolean),
        (b"\0\0\0\5abcd", FieldReader.buffer),
        (b"\xff\xff\xff\xfe", FieldReader.buffer),
        (b"\xff\xff\xff\xff", FieldReader.path),
        (b"\0\0\0\2", FieldReader.count),
        (bytes(67), FieldReader.stat),
    ],
)
def test_a_field_that_is_not_there_is_malformed(data: bytes, read: object) -> None:
    """The error is always of the same class."""
    assert callable(read)
    with pytest.raises(Malformed, match="at byte 0"):
        read(FieldReader(data))


def test_the_open_list_is_always_the_same_object() -> None:
    """The specification compares it by identity."""
    assert FieldReader(acl(tuple(OPEN))).acl() is OPEN
