"""Where brokers are: the value of the option `brokers`."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from watchkeeper.pipeline.errors import PipelineProblem

Protocol = Literal["auto", "0.7", "0.8"]
RETRY_MS = 30_000
"""How long a failing request is retried, unless an option says otherwise."""
_ADDRESS = re.compile(r"(?:(\d+):)?(\[[^\[\]]+\]|[^:\[\]\s]+):(\d{1,5})", re.ASCII)


class Address(Struct, frozen=True):
    """The address of a broker, and its id if that is given."""

    broker: int | None
    host_port: str

    def __str__(self) -> str:
        return self.host_port


class Brokers(Struct, frozen=True):
    """Brokers, and how requests are sent to them."""

    addresses: tuple[Address, ...]
    protocol: Protocol = "auto"
    retry_ms: int = RETRY_MS

    def __str__(self) -> str:
        return ", ".join(map(str, self.addresses))


def addresses_in(text: str) -> tuple[Address, ...]:
    """The addresses in a list; PipelineProblem where it is invalid."""
    found = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        parts = _ADDRESS.fullmatch(each)
        if parts is None or not 0 < int(parts[3]) < 1 << 16:
            raise PipelineProblem(
                f"brokers has {each!r}; expected HOST:PORT, or ID:HOST:PORT for a broker of 0.7, "
                "separated by commas"
            )
        broker = None if parts[1] is None else int(parts[1])
        found.append(Address(broker, f"{parts[2]}:{parts[3]}"))
    if not found:
        raise PipelineProblem("brokers is empty; expected HOST:PORT,...")
    return tuple(found)
