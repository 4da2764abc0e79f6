"""How far a group is behind, where brokers tell: only watchkeeper's own do.

A broker of watchkeeper's answers a line of JSON (see `serving`). Another program at the
same port is asked one line and not believed: what it serves stays unknown, with a reason.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

import msgspec

from model.asks import Partition

PATIENCE_S = 2.0


def log_ends(
    partitions: Mapping[str, Iterable[Partition]],
) -> tuple[dict[Partition, int], list[str]]:
    """Ask the brokers, by address, how far their partitions' logs go; and why some do not say."""
    ends: dict[Partition, int] = {}
    reasons = []
    for address, wanted in sorted(partitions.items()):
        try:
            ends |= _ask(address, list(wanted))
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            reasons.append(
                f"the lag at {address} is unknown: it does not answer as watchkeeper's own "
                f"brokers do ({error})"
            )
    return ends, reasons


def _ask(address: str, wanted: list[Partition]) -> dict[Partition, int]:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S) as line:
        line.settimeout(PATIENCE_S)
        line.sendall(msgspec.json.encode([str(one) for one in wanted]) + b"\n")
        with line.makefile("rb") as answers:
            said = answers.readline(64 * (len(wanted) + 1))
    ends = msgspec.json.decode(said, type=list[int | None])
    return {one: end for one, end in zip(wanted, ends, strict=True) if end is not None}
