"""Which paths ZooKeeper's servers accept, and the parent and name of a path."""

from __future__ import annotations

from functools import lru_cache

ROOT = "/"
RESERVED = frozenset({"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"})
"""These cannot be deleted."""
LONGEST_CACHED = 512
"""Longer paths are not remembered: clients may send a megabyte, as often as they like."""

FORBIDDEN_UNITS = (
    (0x0000, 0x001F),
    (0x007F, 0x009F),
    (0xD800, 0xF8FF),
    (0xFFF0, 0xFFFF),
)
"""UTF-16 units that no path may hold: control characters, surrogates, private use."""


def has_slash_only_where_allowed(path: str) -> bool:
    """Whether the path begins with a slash, ends with none, and has no empty or dotted part."""
    if path == ROOT:
        return True
    if not path.startswith("/"):
        return False
    return all(part not in ("", ".", "..") for part in path[1:].split("/"))


def has_forbidden_unit(path: str) -> bool:
    """Whether a UTF-16 unit of the path is one that servers refuse.

    Every character beyond the basic plane is refused, being a pair of surrogates.
    """
    if path.isascii() and path.isprintable():
        return False
    return any(
        ord(character) > 0xFFFF
        or any(first <= ord(character) <= last for first, last in FORBIDDEN_UNITS)
        for character in path
    )


def is_valid(path: str) -> bool:
    """Whether a server takes this path in a write."""
    return _is_valid(path) if len(path) <= LONGEST_CACHED else _is_valid.__wrapped__(path)


@lru_cache(maxsize=65_536)
def _is_valid(path: str) -> bool:
    return has_slash_only_where_allowed(path) and not has_forbidden_unit(path)


def parent_of(path: str) -> str | None:
    """Return the path of the parent as servers compute it; None if there is no slash.

    Servers cut at the last slash and do not check the rest, so the parent of `/a//b` is
    `/a/`, which no znode can have.
    """
    return _parent_of(path) if len(path) <= LONGEST_CACHED else _parent_of.__wrapped__(path)


@lru_cache(maxsize=65_536)
def _parent_of(path: str) -> str | None:
    at = path.rfind("/")
    if at < 0 or "\0" in path:
        return None
    return path[:at] or ROOT


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return path[path.rfind("/") + 1 :]
