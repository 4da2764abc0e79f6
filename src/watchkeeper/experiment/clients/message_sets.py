"""Messages in sets: fewer requests, and more to compress."""

from __future__ import annotations

import gzip
import json

from watchkeeper.experiment.apparatus.host import new_host
from watchkeeper.experiment.apparatus.programs import ENTRY_BYTES, MB, PAYLOAD_BYTES, took_s
from watchkeeper.experiment.apparatus.rows import Outcome, Row, at_least
from watchkeeper.model.log.format.contents import Series, whole_series
from watchkeeper.model.log.storage import Append, CreateFile
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.engine.random_streams import Stream, Streams
from watchkeeper.sim.storage.host_effects import Idle, Receive

SETS = (1, 10, 50, 200, 1000)
"""Messages in a set; 200 is the default of an asynchronous producer in 0.7."""
REQUESTS = 300
FRAME_BYTES = 40
"""What a request has beside its messages, in 0.7's format with a short topic."""


def requests(machine: MachineProfile) -> Outcome:
    """Produce sets of more and more messages, one request at a time."""
    rates = {count: produced(machine, count) for count in SETS}
    rows = [
        Row(f"sets of {count}", rate * ENTRY_BYTES / MB, "MB/s") for count, rate in rates.items()
    ]
    rows.append(
        Row("sets of 200 against single messages", rates[200] / rates[1], "times", at_least(2))
    )
    return Outcome(
        tuple(rows),
        (
            "One producer that sends a request after the one before has arrived: a round trip "
            "over the network, a call to receive, a call to append.",
        ),
    )


def produced(machine: MachineProfile, count: int) -> float:
    """Messages a second."""
    host = new_host(machine)
    return count * REQUESTS / took_s(host, serve(count, 2 * machine.hop_us))


async def serve(count: int, round_trip_us: int) -> None:
    """Take requests, one after the other, and append what is in them."""
    await CreateFile("log")
    for number in range(REQUESTS):
        await Idle(round_trip_us)
        await Receive(FRAME_BYTES + count * ENTRY_BYTES)
        await Append(
            "log", whole_series(Series("producer", number * count, count, PAYLOAD_BYTES))
        )


# --- compression -----------------------------------------------------------------------

MESSAGES = 1000
AGENTS = (
    "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/534.24 (KHTML, like Gecko) Chrome/11.0",
    "Mozilla/5.0 (Macintosh; U; Intel Mac OS X 10_6_7; en-us) AppleWebKit/533.21.1 Safari/533",
    "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 5.1; Trident/4.0; .NET CLR 2.0.50727)",
    "Mozilla/5.0 (Windows; U; Windows NT 6.1; en-US; rv:1.9.2.17) Gecko/20110420 Firefox/3.6",
)
PAGES = ("/home", "/profile", "/search", "/jobs", "/groups", "/inbox")


def activity(number: int, chance: Stream) -> bytes:
    """An event of an activity stream, as a site writes it."""
    event = {
        "type": "page_view",
        "time": 1_305_000_000_000 + 37 * number + chance.below(37),
        "member_id": chance.below(100_000_000),
        "page": PAGES[chance.below(len(PAGES))],
        "referrer": PAGES[chance.below(len(PAGES))],
        "user_agent": AGENTS[chance.below(len(AGENTS))],
        "ip": ".".join(str(chance.below(256)) for _ in range(4)),
        "request_id": chance.hexadecimal(16),
    }
    return json.dumps(event).encode()


def compression(machine: MachineProfile) -> Outcome:
    """Compress real events with gzip, one by one and in sets, and carry them over the network."""
    chance = Streams(0)("events")
    events = [activity(number, chance) for number in range(MESSAGES)]
    plain = sum(map(len, events))
    sizes = {count: compressed_bytes(events, count) for count in SETS}
    rows = [
        Row(f"gzip, sets of {count}", 100 * size / plain, "% of the size")
        for count, size in sizes.items()
    ]
    rates = {size: carried(machine, size) for size in (plain, sizes[1], sizes[200])}
    rows += [
        Row("sets of 200 against single messages", sizes[1] / sizes[200], "times", at_least(2)),
        Row("network, as they are", rates[plain], "messages/s"),
        Row("network, compressed one by one", rates[sizes[1]], "messages/s"),
        Row("network, compressed in sets of 200", rates[sizes[200]], "messages/s"),
    ]
    return Outcome(tuple(rows), (f"{MESSAGES} events as JSON, {plain // MESSAGES} bytes each.",))


def compressed_bytes(events: list[bytes], count: int) -> int:
    """How much they take when so many are compressed together."""
    sets = [b"".join(events[at : at + count]) for at in range(0, len(events), count)]
    return sum(len(gzip.compress(message_set, 6, mtime=0)) for message_set in sets)


def carried(machine: MachineProfile, size_bytes: int) -> float:
    """Events a second that the network brings."""
    return MESSAGES / took_s(new_host(machine), take_in(size_bytes))


async def take_in(size_bytes: int) -> None:
    """Take them from the network."""
    await Receive(size_bytes)
