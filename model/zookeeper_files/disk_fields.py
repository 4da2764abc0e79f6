"""Fields as they are on the disk: strings of any characters, and the owner of a znode.

Apache's servers have one number for the session that owns a znode and for its lifetime:

  0                       it lives until it is deleted
  the lowest number       a container
  255 in the first byte   a TTL, in ms, in the last five bytes
  any other               an ephemeral of this session
"""

from __future__ import annotations

from watchkeeper.model.actor.operations import CONTAINER_MS, UNLIMITED_MS
from watchkeeper.model.wire.fields import FieldReader
from watchkeeper.model.zookeeper.lifetimes import LONGEST_TTL_MS
from watchkeeper.model.zookeeper.znode import NO_SESSION, Znode

CONTAINER_OWNER = -(1 << 63)
LOWEST_TTL_OWNER = -(1 << 56)
"""As an unsigned number: 255 in the first byte, and zeros."""


class DiskReader(FieldReader):
    """Reads fields that a server has written by itself."""

    __slots__ = ()

    def string(self) -> str | None:
        """The next string; each UTF-16 unit may be encoded by itself, as Java does it."""
        data = self.buffer()
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            return _joined(data)


def _joined(data: bytes) -> str:
    try:
        units = data.decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
        return units.decode("utf-16-be", "replace")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def owner_on_disk(znode: Znode) -> int:
    """The number that stands for the session and the lifetime of a znode."""
    if znode.lifetime_ms == UNLIMITED_MS:
        return znode.owner
    if znode.lifetime_ms == CONTAINER_MS:
        return CONTAINER_OWNER
    return LOWEST_TTL_OWNER | znode.lifetime_ms


def owner_and_lifetime(on_disk: int) -> tuple[int, int]:
    """The session that owns a znode, and the znode's lifetime in ms."""
    if on_disk == CONTAINER_OWNER:
        return NO_SESSION, CONTAINER_MS
    if LOWEST_TTL_OWNER < on_disk <= LOWEST_TTL_OWNER | LONGEST_TTL_MS:
        return NO_SESSION, on_disk - LOWEST_TTL_OWNER
    return on_disk, UNLIMITED_MS
