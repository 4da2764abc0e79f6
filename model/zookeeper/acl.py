"""Access control lists: which are valid, and whom they permit what.

How it works
  A connection has identities: its address as `("ip", address)`, and each name that its
  client has proved as `("digest", name:hash)`. Every connection is `world:anyone` too, which
  is never listed. Identities go with the connection: the same session has others, or none,
  on its next one. So they are a parameter of each operation and not part of the tree.

  In a request `auth` stands for all that the client has proved. An address is no proof, so
  `auth` does not stand for it, and a server stores no entry of scheme `auth`.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from watchkeeper.model.actor.operations import OPEN, Acl

Identities = tuple[tuple[str, str], ...]
"""The (scheme, identity) pairs of a connection beside `world:anyone`."""


def is_allowed(identities: Identities, acl: tuple[Acl, ...], permissions: int) -> bool:
    """Whether a list grants one of these permissions to one of these identities."""
    if acl is OPEN:
        return True
    for entry in acl:
        if not entry.permissions & permissions:
            continue
        if entry.scheme == "world":
            return True
        if any(_matches(entry, scheme, identity) for scheme, identity in identities):
            return True
    return False


def _matches(entry: Acl, scheme: str, identity: str) -> bool:
    if entry.scheme != scheme:
        return False
    if scheme != "ip":
        return entry.identity == identity
    network = _network(entry.identity)
    return network is not None and ip_address(identity) in network


def resolved(identities: Identities, acl: tuple[Acl, ...]) -> tuple[Acl, ...] | None:
    """Return the list that a server stores for a list in a request; None if it is not valid.

    Duplicate entries are stored once.
    """
    if acl is OPEN:
        return acl
    if acl == OPEN:
        return OPEN  # what arrives as bytes is equal to it; from here on it is the same object
    kept: dict[Acl, None] = {}
    for entry in acl:
        own = _resolved_entry(entry, identities)
        if not own:
            return None
        kept.update(dict.fromkeys(own))
    return tuple(kept) or None


def _resolved_entry(entry: Acl, identities: Identities) -> tuple[Acl, ...]:
    if entry.scheme == "auth":
        return tuple(
            Acl(entry.permissions, scheme, name) for scheme, name in identities if scheme != "ip"
        )
    return (entry,) if _is_valid_entry(entry) else ()


def _is_valid_entry(entry: Acl) -> bool:
    if entry.scheme == "world":
        return entry.identity == "anyone"
    if entry.scheme == "digest":
        return entry.identity.count(":") == 1
    return entry.scheme == "ip" and _network(entry.identity) is not None


@lru_cache(maxsize=1024)
def _network(text: str) -> IPv4Network | IPv6Network | None:
    """Return the network that an entry names: an address, or an address and a prefix length."""
    _, slash, bits = text.partition("/")
    if slash and not bits.isdecimal():
        return None  # ip_network would take a netmask too
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def digest_identity(credential: bytes) -> tuple[str, str]:
    """Return the identity that a credential of scheme `digest`, `name:password`, proves."""
    text = credential.decode(errors="replace")
    name = text.partition(":")[0]
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).digest()
    return "digest", f"{name}:{b64encode(digest).decode()}"
