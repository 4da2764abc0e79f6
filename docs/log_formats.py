"""The page of the formats: every example is encoded, cut into fields and read by the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from model.log import errors, message_08
from model.log.codecs import Codec, compress
from model.log.contents import Contents
from model.log.entries import messages_in, whole_entries
from model.log.errors import CODES, LogError
from model.log.message import Message
from model.log.message_08 import KeyedMessage
from model.log.message_set import encode, shallow, wrap
from model.log.requests import (
    LATEST,
    RESPONSES,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    Request,
    Response,
    encode_request,
    encode_response,
)
from model.log.wire import LARGEST_FRAME_BYTES, Laid

Table = Callable[[list[str], Iterator[list[str]]], str]
Row = tuple[str, str, int | None, str]
"""A field: its name, its type, how many bytes it takes (None: the rest), what it says."""

REST = None
SIZE: Row = ("size", "int32", 4, "of what follows")
PAYLOAD: Row = ("payload", "bytes", REST, "anything")
CRC: Row = ("CRC", "int32", 4, "CRC-32 (zlib's) of the payload alone")
MAGIC_0: tuple[Row, ...] = (SIZE, ("magic", "int8", 1, "0"), CRC, PAYLOAD)
MAGIC_1: tuple[Row, ...] = (
    SIZE,
    ("magic", "int8", 1, "1"),
    ("attributes", "int8", 1, "the two lowest bits: the codec; the others are 0"),
    CRC,
    PAYLOAD,
)
SNAPPY: tuple[Row, ...] = (
    ("magic", "8 bytes", 8, "always these"),
    ("version", "int32", 4, "1"),
    ("oldest version", "int32", 4, "the oldest that can read it: 1"),
    ("block size", "int32", 4, "of the block, compressed; once a block"),
    ("block", "raw snappy", REST, "at most 32 KiB when decompressed"),
)
ENTRY_08: tuple[Row, ...] = (
    ("offset", "int64", 8, "which message of the log it is, counted from 0"),
    ("size", "int32", 4, "of what follows"),
    ("CRC", "int32", 4, "CRC-32 (zlib's) of all that follows it"),
    ("magic", "int8", 1, "0"),
    ("attributes", "int8", 1, "the three lowest bits: the codec"),
    ("key length", "int32", 4, "-1: there is no key"),
    ("key", "bytes", 1, "as many as that"),
    ("value length", "int32", 4, "-1: there is no value, the message is a tombstone"),
    ("value", "bytes", REST, "as many as that"),
)


def hexadecimal(data: bytes) -> str:
    """Bytes as they are shown."""
    return f"`{data.hex()}`" if data else ""


def cut(data: bytes, rows: Sequence[Row]) -> Iterator[list[str]]:
    """An example, field by field."""
    at = 0
    for name, kind, width, says in rows:
        end = len(data) if width is REST else at + width
        yield [name, kind, hexadecimal(data[at:end]), says]
        at = end
    assert at == len(data), f"{rows} do not cover {data!r}"


def fields(table: Table, data: bytes, rows: Sequence[Row]) -> str:
    """The table of a format, with an example."""
    return table(["field", "type", "example", "what it says"], cut(data, rows))


# --- 0.7 -------------------------------------------------------------------------------


def offsets_of(table: Table) -> str:
    """Which offsets the messages of a log have, plain and compressed."""
    three = [Message.of(text) for text in (b"one", b"two", b"three")]
    log = encode([Message.of(b"hello")]) + wrap(three, Codec.SNAPPY) + encode(three[:1])
    wrappers = {entry.offset: bool(entry.message.codec) for entry in shallow(log)}
    rows = (
        [
            f"`{one.payload.decode()}`" if isinstance(one.payload, bytes) else "",
            "compressed" if wrappers[one.offset] else "plain",
            str(one.offset),
            str(one.next_offset),
        ]
        for one in messages_in(log)
    )
    return table(["message", "entry", "offset", "next offset"], rows)


def outcome(use: Callable[[Contents], object], data: bytes) -> str:
    """What comes of reading something."""
    try:
        return str(use(data))
    except LogError as error:
        return f"{type(error).__name__}: {error.meaning}"


def damage_table(table: Table) -> str:
    """What a reader and recovery make of entries that are not as they should be."""
    entry = encode([Message.of(b"hello")])
    cases = {
        "one entry": entry,
        "one entry, and 7 bytes of another": entry + entry[:7],
        "7 bytes of an entry, and nothing else": entry[:7],
        "one entry, one whose payload was changed": entry + entry[:-1] + b"!",
        "one entry, one of magic 7": entry + entry[:4] + b"\7" + entry[5:],
        "one entry, eight zeros": entry + bytes(8),
        "one entry, a wrapper round nothing": entry
        + encode([Message.of(compress(Codec.GZIP, b""), codec=Codec.GZIP)]),
    }

    def reading(data: Contents) -> str:
        found = [one.payload for one in messages_in(data)]
        return f"{len(found)} message{'' if len(found) == 1 else 's'}"

    rows = (
        [what, str(len(data)), outcome(reading, data), outcome(whole_entries, data)]
        for what, data in cases.items()
    )
    return table(["what there is", "bytes", "reading gives", "recovery keeps"], rows)


# --- frames ----------------------------------------------------------------------------

FETCH = FetchRequest("test", 0, 0, 1024)
PRODUCE = ProduceRequest("test", 0, encode([Message.of(b"42")]))
FETCHED = FetchResponse(encode([Message.of(b"42")]))
EXAMPLES: tuple[tuple[Request, Response | None], ...] = (
    (PRODUCE, None),
    (FETCH, FETCHED),
    (MultiFetchRequest((FETCH,)), MultiFetchResponse((FETCHED,))),
    (MultiProduceRequest((PRODUCE,)), None),
    (OffsetsRequest("test", 0, LATEST, 1), OffsetsResponse((240,))),
)


def layout_table(table: Table, value: Laid, frame: bytes, head: list[list[str]]) -> str:
    """The table of a frame, drawn from the layout of its value."""

    def rows() -> Iterator[list[str]]:
        yield from head
        at = value.head_bytes
        for name, kind, says in value.layout:
            data = b"".join(kind.parts(getattr(value, name)))
            assert frame[at : at + len(data)] == data
            at += len(data)
            yield [name.replace("_", " "), kind.name, hexadecimal(data), says]
        assert at == len(frame)

    return table(["field", "type", "example", "what it says"], rows())


def frame_parts(table: Table) -> Iterator[str]:
    """Every request, and its response if it has one."""
    for request, response in EXAMPLES:
        kind = type(request)
        assert (RESPONSES.get(kind) is None) == (response is None)
        frame = encode_request(request)
        number = hexadecimal(frame[4:6])
        head = [
            ["size", "int32", hexadecimal(frame[:4]), "of what follows"],
            ["number", "int16", number, f"{request.number}: which request it is"],
        ]
        about = (kind.__doc__ or "").strip()
        title = f"### {request.number}: {kind.__name__}\n\n{about}"
        yield f"{title}\n\n{layout_table(table, request, frame, head)}"
        if response is not None:
            frame = encode_response(response)
            yield f"Its response:\n\n{layout_table(table, response, frame, head_of(frame))}"


def head_of(frame: bytes) -> list[list[str]]:
    """What precedes the fields of a response."""
    return [["size", "int32", hexadecimal(frame[:4]), "of what follows"]]


def codes_table(table: Table) -> str:
    """The codes of the wire, and which errors leave a broker as which."""
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    named = [one for one in kinds if issubclass(one, LogError) and one is not LogError]

    def rows() -> Iterator[list[str]]:
        yield ["0", "", "no error", ""]
        for code, error in CODES.items():
            others = [one.__name__ for one in named if one.code == code and one is not error]
            yield [str(code), error.__name__, error.meaning, ", ".join(others)]

    return table(["code", "error", "what it says", "errors that go out as it"], rows())


# --- the page --------------------------------------------------------------------------


def log_formats_page(page: Callable[..., str], table: Table) -> str:
    """All of it."""
    hello = encode([Message.of(b"hello")])
    old = encode([Message.of(b"hello", magic=0)])
    keyed = message_08.encode([KeyedMessage(b"k", b"v")], 7)
    codecs = ([str(one.value), one.name.lower(), compressed(one)] for one in Codec)
    return page(
        "The formats of logs and requests",
        "What Kafka 0.7 writes into its logs and onto its connections, and what 0.8.0 writes "
        "into its logs. Every number is big-endian and signed unless it is a CRC. How a folder "
        "of logs is read with these is shown in [Read a log](../how-to/read-a-log.md).",
        "## A message set of 0.7",
        "A log file is a message set, and so is what a request carries: entries, one after the "
        "other, with nothing before, between or after them. An entry that is written now:",
        fields(table, hello, MAGIC_1),
        "Logs of the first releases have entries without attributes; both stand in one log:",
        fields(table, old, MAGIC_0),
        "## Compressed messages",
        "Where the attributes name a codec, the message is a wrapper: its payload is a whole "
        "message set, compressed. The CRC is that of the compressed bytes. An empty "
        "set stays empty: no wrapper round nothing is written.",
        table(["codec", "name", "how"], codecs),
        "snappy stands in the framing of snappy-java. This is `foobar` and a line feed; a "
        "payload that does not begin with the magic is read as one block without its size.",
        fields(table, compress(Codec.SNAPPY, b"foobar\n"), SNAPPY),
        "## Offsets of 0.7",
        "An offset is the position of an entry in all the bytes that the log has ever had; a "
        "file is named after the offset of its first. What is compressed in one wrapper has the "
        "offset of the wrapper. Whoever stops after a message goes on at its *next offset*, so "
        "with a wrapper one begins anew, unless its last message was read.",
        offsets_of(table),
        "## What is cut or damaged",
        "A broker cuts what it sends wherever the size that was asked for ends. So the part of "
        "an entry at the end is dropped; but where there is nothing else, that is an error. "
        "Recovery after a crash keeps whole entries with right CRCs, up to the first that is "
        "not one.",
        damage_table(table),
        "## A message set of 0.8",
        "A message has a key now, and an offset counts messages instead of bytes. The broker "
        "deals it out, so it precedes what the CRC covers.",
        fields(table, keyed, ENTRY_08),
        "A wrapper has no key; its value is a compressed message set, whose entries have their "
        "final offsets, and its own offset is that of the last of them. So a broker that appends "
        "one has to decompress it, number what is in it, and compress it again.",
        "## Requests and responses of 0.7",
        "A frame begins with the size of what follows; a broker refuses one of more than "
        f"{LARGEST_FRAME_BYTES:,} bytes (`max.socket.request.bytes`) before it reads on. "
        "Responses come in the order of the requests, and do not say which they belong to.",
        *frame_parts(table),
        "## Error codes",
        codes_table(table),
    )


def compressed(codec: Codec) -> str:
    """How a codec compresses, in a few words."""
    return {
        Codec.NONE: "not at all",
        Codec.GZIP: "one gzip member (RFC 1952), written with time 0",
        Codec.SNAPPY: "blocks of raw snappy, framed as below",
    }[codec]
