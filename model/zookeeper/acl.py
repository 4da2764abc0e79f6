"""Access control lists: which are valid, and which session they permit what."""

from __future__ import annotations

from ipaddress import ip_address

from watchkeeper.model.actor.operations import OPEN, Acl
from watchkeeper.model.zookeeper.tree import Tree

Identities = tuple[tuple[str, str], ...]


def identities_of(tree: Tree, session: int) -> Identities:
    """Return the (scheme, identity) pairs that a session has authenticated."""
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
    """Return the list that a server stores for a list in a request; None if it is not valid.

    `auth` stands for all identities of the session; duplicate entries are stored once.
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
    return (entry,) if _is_valid_entry(entry) else ()


def _is_valid_entry(entry: Acl) -> bool:
    if entry.scheme == "world":
        return entry.identity == "anyone"
    if entry.scheme == "digest":
        return entry.identity.count(":") == 1
    return entry.scheme == "ip" and _is_address(entry.identity)


def _is_address(text: str) -> bool:
    """Whether this is an IP address, with or without a prefix length."""
    host, slash, bits = text.partition("/")
    try:
        most = ip_address(host).max_prefixlen
    except ValueError:
        return False
    return not slash or (bits.isdecimal() and int(bits) <= most)
