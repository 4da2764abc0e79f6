"""The addresses and networks that an access control list may name, as Apache's servers read them.

An IPv4 number may have a sign and leading zeros; an IPv6 one has no zone and no IPv4 tail.
A network is an address, a slash and the length of its prefix in bits: a netmask is refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

INTEGER = re.compile(r"[+-]?\d+")
GROUP = re.compile(r"[+-]?[0-9a-fA-F]+")
GROUPS, LONGEST_GROUP = 8, 4
"""Of an IPv6 address: how many groups it has, and the length of one in characters."""


class Network(NamedTuple):
    """All addresses that begin with the same bits."""

    address: bytes
    prefix_bits: int

    def has(self, address: bytes) -> bool:
        """Whether an address of the same family begins with these bits."""
        ignored = 8 * len(self.address) - self.prefix_bits
        return len(address) == len(self.address) and (
            int.from_bytes(address) >> ignored == int.from_bytes(self.address) >> ignored
        )


@lru_cache(maxsize=1024)
def network_of(text: str) -> Network | None:
    """Return the network that a text names; a single address is a network too."""
    host, slash, bits = text.partition("/")
    address = address_of(host)
    if address is None:
        return None
    longest = 8 * len(address)
    prefix = _number(bits, longest) if slash else longest
    return None if prefix is None else Network(address, prefix)


@lru_cache(maxsize=1024)
def address_of(text: str) -> bytes | None:
    """Return the 4 or 16 bytes of an address; None if it is none."""
    return _address_6(text) if ":" in text else _address_4(text)


def _address_4(text: str) -> bytes | None:
    numbers = [_number(part, 255) for part in text.split(".")]
    known = [number for number in numbers if number is not None]
    return bytes(known) if len(known) == len(numbers) == 4 else None


def _number(text: str, most: int) -> int | None:
    if not INTEGER.fullmatch(text) or len(text) > 20:
        return None
    return number if 0 <= (number := int(text)) <= most else None


def _address_6(text: str) -> bytes | None:
    head, gap, tail = text.partition("::")
    before, after = _groups(head), _groups(tail)
    if before is None or after is None:
        return None
    missing = GROUPS - len(before) - len(after)
    if missing < 0 or bool(gap) != bool(missing):
        return None
    groups = [*before, *[0] * missing, *after]
    return b"".join(group.to_bytes(2) for group in groups)


def _groups(text: str) -> list[int] | None:
    if not text:
        return []
    groups: list[int] = []
    for part in text.split(":"):
        if len(part) > LONGEST_GROUP or not GROUP.fullmatch(part):
            return None
        groups.append(int(part, 16) & 0xFFFF)
    return groups
