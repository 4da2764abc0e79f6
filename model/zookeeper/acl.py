"""Access control lists: which are valid, and what they allow to whom."""

from __future__ import annotations

from ipaddress import ip_address

from model.operations import OPEN, Acl
from model.zookeeper.tree import Tree

Identities = tuple[tuple[str, str], ...]


def identities_of(tree: Tree, session: int) -> Identities:
    """What a session has shown of itself, as (scheme, identity), beside `world:anyone`."""
    known = tree.sessions.get(session)
    return known.identities if known is not None else ()


def is_allowed(tree: Tree, session: int, acl: tuple[Acl, ...], permissions: int) -> bool:
    """Whether a list grants a session one of these permissions."""
    if acl is OPEN:
        return True
    identities: Identities | None = None
    for entry in acl:
        if not entry.permissions & permissions:
            continue
        if entry.scheme == "world":
            return True
        if identities is None:
            identities = identities_of(tree, session)
        if (entry.scheme, entry.identity) in identities:
            return True
    return False


def resolved(tree: Tree, session: int, acl: tuple[Acl, ...]) -> tuple[Acl, ...] | None:
    """The list a server keeps when a session gives it this one; None if it is not valid.

    `auth` stands for whatever the session has shown of itself, and an entry that is given
    twice is kept once.
    """
    if acl is OPEN:
        return acl
    kept: dict[Acl, None] = {}
    for entry in acl:
        own = _resolved_entry(entry, identities_of(tree, session))
        if not own:
            return None
        kept.update(dict.fromkeys(own))
    return tuple(kept) or None


def _resolved_entry(entry: Acl, identities: Identities) -> tuple[Acl, ...]:
    if entry.scheme == "auth":
        return tuple(Acl(entry.permissions, scheme, name) for scheme, name in identities)
    return (entry,) if _means_somebody(entry) else ()


def _means_somebody(entry: Acl) -> bool:
    if entry.scheme == "world":
        return entry.identity == "anyone"
    if entry.scheme == "digest":
        return entry.identity.count(":") == 1
    return entry.scheme == "ip" and _is_address(entry.identity)


def _is_address(text: str) -> bool:
    """Whether this is an address of IP, perhaps with the number of bits that count."""
    host, slash, bits = text.partition("/")
    try:
        most = ip_address(host).max_prefixlen
    except ValueError:
        return False
    return not slash or (bits.isdecimal() and int(bits) <= most)
