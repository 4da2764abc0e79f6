"""The page of the formats, whose examples are encoded and read by the code itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from watchkeeper.model.log.format import errors, message_08, requests_08
from watchkeeper.model.log.format.codecs import Codec, compress
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.entries import intact_size, messages_in
from watchkeeper.model.log.format.errors import CODES, LogError
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES, WireStruct, size_on_wire
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_08 import KeyedMessage
from watchkeeper.model.log.format.message_set_07 import encode, shallow, wrap
from watchkeeper.model.log.format.requests import (
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

Table = Callable[[list[str], Iterator[list[str]]], str]
Row = tuple[str, str, int | None, str]
"""A field: its name, its type, its size in bytes (None: the rest), its meaning."""

REST = None
SIZE: Row = ("size", "int32", 4, "the number of bytes that follow")
PAYLOAD: Row = ("payload", "bytes", REST, "any bytes")
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
    ("magic", "8 bytes", 8, "constant"),
    ("version", "int32", 4, "1"),
    ("oldest version", "int32", 4, "the oldest version that can read it: 1"),
    ("block size", "int32", 4, "the compressed size of the block; one for each block"),
    ("block", "raw snappy", REST, "at most 32 KiB when decompressed"),
)
LZ4: tuple[Row, ...] = (
    ("magic", "4 bytes", 4, "constant"),
    ("flags", "int8", 1, "version 1, and blocks that do not refer to each other"),
    ("block size", "int8", 1, "the largest size of a block when decompressed: 64 KiB"),
    (
        *("checksum", "int8", 1),
        "of the header; 0.8 has the magic in it, against the definition of the frame",
    ),
    (
        *("size", "int32, little-endian", 4),
        "the size of the block; the highest bit is set for a block that is not compressed",
    ),
    ("block", "raw LZ4", 7, "at most 64 KiB when decompressed"),
    ("end", "int32", 4, "0, after the last block"),
)
ENTRY_08: tuple[Row, ...] = (
    ("offset", "int64", 8, "the number of the message in the log, from 0"),
    ("size", "int32", 4, "the number of bytes that follow"),
    ("CRC", "int32", 4, "CRC-32 (zlib's) of all following bytes"),
    ("magic", "int8", 1, "0"),
    ("attributes", "int8", 1, "the three lowest bits: the codec"),
    ("key length", "int32", 4, "-1: no key"),
    ("key", "bytes", 1, "the key"),
    ("value length", "int32", 4, "-1: no value, the message is a tombstone"),
    ("value", "bytes", REST, "the value"),
)


def hexadecimal(data: bytes) -> str:
    """Format bytes for a table."""
    return f"`{data.hex()}`" if data else ""


def cut(data: bytes, rows: Sequence[Row]) -> Iterator[list[str]]:
    """Cut an example into its fields."""
    at = 0
    for name, kind, width, says in rows:
        end = len(data) if width is REST else at + width
        yield [name, kind, hexadecimal(data[at:end]), says]
        at = end
    assert at == len(data), f"{rows} do not cover {data!r}"


def fields(table: Table, data: bytes, rows: Sequence[Row]) -> str:
    """The table of a format, with an example."""
    return table(["field", "type", "example", "meaning"], cut(data, rows))


# --- 0.7 -------------------------------------------------------------------------------


def offsets_of(table: Table) -> str:
    """The offsets of plain and compressed messages in a log."""
    three = [Message.of(text) for text in (b"one", b"two", b"three")]
    log = encode([Message.of(b"hello")]) + wrap(three, Codec.SNAPPY) + encode(three[:1])
    wrappers = {entry.offset: bool(entry.message.codec) for entry in shallow(log)}
    rows = (
        [
            f"`{message.payload.decode()}`" if isinstance(message.payload, bytes) else "",
            "compressed" if wrappers[message.offset] else "plain",
            str(message.offset),
            str(message.next_offset),
        ]
        for message in messages_in(log)
    )
    return table(["message", "entry", "offset", "next offset"], rows)


def outcome(use: Callable[[Contents], object], data: bytes) -> str:
    """The result of a read, or the name of its error."""
    try:
        return str(use(data))
    except LogError as error:
        return f"{type(error).__name__}: {error.meaning}"


def damage_table(table: Table) -> str:
    """The results of reading and of recovery for cut and damaged entries."""
    entry = encode([Message.of(b"hello")])
    cases = {
        "one entry": entry,
        "one entry, and 7 bytes of another": entry + entry[:7],
        "7 bytes of an entry, and nothing else": entry[:7],
        "one entry, one with a changed payload": entry + entry[:-1] + b"!",
        "one entry, one of magic 7": entry + entry[:4] + b"\7" + entry[5:],
        "one entry, eight zeros": entry + bytes(8),
        "one entry, a wrapper round nothing": entry
        + encode([Message.of(compress(Codec.GZIP, b""), codec=Codec.GZIP)]),
    }

    def reading(data: Contents) -> str:
        found = [message.payload for message in messages_in(data)]
        return f"{len(found)} message{'' if len(found) == 1 else 's'}"

    rows = (
        [what, str(len(data)), outcome(reading, data), outcome(intact_size, data)]
        for what, data in cases.items()
    )
    return table(["content", "bytes", "result of a read", "bytes that recovery keeps"], rows)


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


def layout_table(table: Table, value: WireStruct, frame: bytes, head: list[list[str]]) -> str:
    """The table of a frame, made from the layout of its value."""

    def rows() -> Iterator[list[str]]:
        yield from head
        at = value.header_bytes
        for name, kind, says in value.layout:
            data = b"".join(kind.parts(getattr(value, name)))
            assert frame[at : at + len(data)] == data
            at += len(data)
            yield [name.replace("_", " "), kind.name, hexadecimal(data), says]
        assert at == len(frame)

    return table(["field", "type", "example", "meaning"], rows())


def frame_parts(table: Table) -> Iterator[str]:
    """Every request, and its response if it has one."""
    for request, response in EXAMPLES:
        kind = type(request)
        assert (RESPONSES.get(kind) is None) == (response is None)
        frame = encode_request(request)
        number = hexadecimal(frame[4:6])
        head = [
            ["size", "int32", hexadecimal(frame[:4]), "the number of bytes that follow"],
            ["number", "int16", number, f"{request.number}: the kind of request"],
        ]
        about = (kind.__doc__ or "").strip()
        title = f"### {request.number}: {kind.__name__}\n\n{about}"
        yield f"{title}\n\n{layout_table(table, request, frame, head)}"
        if response is not None:
            frame = encode_response(response)
            yield f"Its response:\n\n{layout_table(table, response, frame, head_of(frame))}"


def offsets_parts_08(table: Table) -> Iterator[str]:
    """The header and the fields of the offsets request of 0.8, and its response."""
    times = (requests_08.TopicTimes("test", (requests_08.PartitionTime(3),)),)
    request = requests_08.OffsetsRequest(times)
    header = requests_08.RequestHeader(requests_08.OFFSETS_KEY, 0, 7, "a client")
    whole = requests_08.encode_request(request, 7, "a client")
    size = [["size", "int32", hexadecimal(whole[:4]), "the number of bytes that follow"]]
    end = len(whole) - size_on_wire(request)
    yield layout_table(table, header, whole[4:end], size)
    yield layout_table(table, request, whole[end:], [])
    found = (requests_08.TopicOffsets("test", (requests_08.PartitionOffsets(3, 0, (15,)),)),)
    response = requests_08.OffsetsResponse(7, found)
    frame = encode_response(response)
    yield f"Its response:\n\n{layout_table(table, response, frame, head_of(frame))}"


def head_of(frame: bytes) -> list[list[str]]:
    """The rows before the fields of a response."""
    return [["size", "int32", hexadecimal(frame[:4]), "the number of bytes that follow"]]


def codes_table(table: Table) -> str:
    """The error codes of the protocol, and the errors that each stands for."""
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    named = [kind for kind in kinds if issubclass(kind, LogError) and kind is not LogError]

    def rows() -> Iterator[list[str]]:
        yield ["0", "", "no error", ""]
        for code, error in CODES.items():
            others = [kind.__name__ for kind in named if kind.code == code and kind is not error]
            yield [str(code), error.__name__, error.meaning, ", ".join(others)]

    return table(["code", "error", "meaning", "other errors with this code"], rows())


# --- the page --------------------------------------------------------------------------


def log_formats_page(page: Callable[..., str], table: Table) -> str:
    """The whole page."""
    return page(
        "The formats of logs and requests",
        "The formats of logs and requests of Kafka 0.7, of logs of Kafka 0.8, and of 0.8's "
        "request for offsets. Every number is big-endian and signed unless it is a CRC, or the "
        "table says otherwise. [Read a log](../how-to/read-a-log.md) reads a folder of logs "
        "with them.",
        *message_sets(table),
        "## Requests and responses of 0.7",
        "A frame begins with its size; a broker refuses one of more than "
        f"{LARGEST_FRAME_BYTES:,} bytes (`max.socket.request.bytes`) before it reads the rest. "
        "Responses come in the order of the requests, and do not name them.",
        *frame_parts(table),
        "## The offsets request of 0.8",
        "An audit requests the ends of logs from brokers of 0.8 with it. Every request of 0.8 "
        "has a header, and a response that repeats its correlation id. The example requests the "
        "end of `test/3`.",
        *offsets_parts_08(table),
        "## Error codes",
        codes_table(table),
    )


def message_sets(table: Table) -> Iterator[str]:
    """The sections of what logs hold."""
    hello = encode([Message.of(b"hello")])
    old = encode([Message.of(b"hello", magic=0)])
    keyed = message_08.encode([KeyedMessage(b"k", b"v")], 7)
    codecs = ([str(codec.value), codec.name.lower(), compressed(codec)] for codec in Codec)
    yield from (
        "## A message set of 0.7",
        "Log files and requests contain message sets. A message set is a sequence of entries, "
        "with nothing before, between or after them. The current format of an entry:",
        fields(table, hello, MAGIC_1),
        "The first releases wrote entries without attributes; a log may contain both:",
        fields(table, old, MAGIC_0),
        "## Compressed messages",
        "If the attributes name a codec, the message is a wrapper: its payload is a whole "
        "compressed message set. The CRC is that of the compressed bytes. An empty set has no "
        "wrapper.",
        table(["codec", "name", "format"], codecs),
        "Snappy uses the framing of snappy-java. The example is `foobar` and a line feed. A "
        "payload without this magic is read as one block without its size.",
        fields(table, compress(Codec.SNAPPY, b"foobar\n"), SNAPPY),
        "lz4 came with 0.8.2; a reader of 0.7 refuses it. The checksum of the header is not "
        "checked here, since the CRC of the message covers it: brokers and clients of 0.8 write "
        "and expect a wrong one, later ones the right one. Blocks that refer to each other are "
        "refused, as Kafka refuses them. The example is the same text.",
        fields(table, compress(Codec.LZ4, b"foobar\n"), LZ4),
        "## Offsets of 0.7",
        "An offset is the position of an entry among all bytes that were ever appended to the "
        "log; a file is named after the offset of its first entry. Compressed messages have the "
        "offset of their wrapper. A consumer continues at the *next offset* of the last message "
        "that it read: at the start of the same wrapper, unless it read the last message in it.",
        offsets_of(table),
        "## What is cut or damaged",
        "A broker cuts a response at the requested size. So a reader drops a partial entry at "
        "the end; a response with nothing else is an error. Recovery after a crash keeps whole "
        "entries with correct CRCs, up to the first other one.",
        damage_table(table),
        "## A message set of 0.8",
        "In 0.8 a message has a key, and an offset counts messages instead of bytes. The broker "
        "assigns the offset, so it precedes the bytes that the CRC covers.",
        fields(table, keyed, ENTRY_08),
        "A wrapper has no key; its value is a compressed message set, whose entries have their "
        "final offsets, and its own offset is that of the last of them. So a broker that appends "
        "one has to decompress it, number its messages, and compress it again.",
    )


def compressed(codec: Codec) -> str:
    """The format of a codec, in a few words."""
    return {
        Codec.NONE: "not compressed",
        Codec.GZIP: "one gzip member (RFC 1952), written with time 0",
        Codec.SNAPPY: "blocks of raw snappy, framed as below",
        Codec.LZ4: "an LZ4 frame, as below; only in 0.8",
    }[codec]
