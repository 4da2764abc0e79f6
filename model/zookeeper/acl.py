"""Access control lists: which are valid, and whom they permit what.

How it works
  A connection has identities: its address as `("ip", address)`, and each name that its
  client has proved as `("digest", "name:hash")`. Every connection is `world:anyone` too, which
  is never listed. Identities go with the connection: the same session has others, or none,
  on its next one. So they are a parameter of each operation and not part of the tree.

  In a request `auth` stands for all that the client has proved. An address is no proof, so
  `auth` does not stand for it. A server stores no entry of scheme `auth`, and no entry of
  `sasl`, `x509` or `super`, which need a server that is configured for them.
"""

from __future__ import annotations

import re

from watchkeeper.model.actor.errors import InvalidACL, MarshallingError, ZooKeeperError
from watchkeeper.model.actor.operations import ADMIN, OPEN, Acl
from watchkeeper.model.zookeeper.addresses import address_of, network_of

Identities = tuple[tuple[str, str], ...]
"""The (scheme, identity) pairs of a connection beside `world:anyone`."""

NO_IDENTITY = "\0"
"""The identity of an entry that came without one, and whose scheme looks at it."""


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
    network, address = network_of(entry.identity), address_of(identity)
    return network is not None and address is not None and network.has(address)


def resolved(identities: Identities, acl: tuple[Acl, ...]) -> tuple[Acl, ...] | None:
    """Return the list that a server stores for a list in a request; None if it is not valid.

    A repeated entry is stored once; what `auth` stands for is stored even if it repeats one.
    """
    if acl is OPEN:
        return acl
    if acl == OPEN:
        return OPEN  # a list that was decoded; from here on the identity comparison is enough
    stored: list[Acl] = []
    for entry in dict.fromkeys(acl):
        own = _resolved_entry(entry, identities)
        if not own:
            return None
        stored.extend(own)
    return tuple(stored) or None


def fault_of(identities: Identities, acl: tuple[Acl, ...]) -> type[ZooKeeperError]:
    """Return the error for a list that is not valid; its first entry at fault decides.

    A server fails on an entry without an identity before it can call the entry invalid.
    """
    for entry in acl:
        if not _resolved_entry(entry, identities):
            return MarshallingError if entry.identity == NO_IDENTITY else InvalidACL
    return InvalidACL


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
        # Two parts as Java splits a string: parts that are empty at its end do not count.
        return entry.identity.rstrip(":").count(":") == 1
    return entry.scheme == "ip" and network_of(entry.identity) is not None


def readable(identities: Identities, acl: tuple[Acl, ...]) -> tuple[Acl, ...]:
    """Return a list as a client may read it: without ADMIN, the hashes of digests are `x`."""
    if is_allowed(identities, acl, ADMIN):
        return acl
    return tuple(
        Acl(entry.permissions, entry.scheme, re.sub(":.*", ":x", entry.identity))
        if entry.scheme == "digest"
        else entry
        for entry in acl
    )
