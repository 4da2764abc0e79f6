"""The digest of a tree, which Apache's servers log after each transaction.

It adds up a CRC of each znode: path, data and counters. What is below `/zookeeper/` does not
count, and the root has the path "". So a log that Apache's server has written says for each of
its transactions which tree a replay has to reach.
"""

from __future__ import annotations

import struct
from zlib import crc32

from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.model.zookeeper.znode import Znode
from watchkeeper.model.zookeeper_files.disk_fields import owner_on_disk
from watchkeeper.model.zookeeper_files.transactions import Transaction

NOT_COUNTED = "/zookeeper/"
VERSION = 2
_LOGGED = struct.Struct(">iq")
_COUNTERS = struct.Struct(">qqqqqiiiq")


def logged_digest(transaction: Transaction) -> int:
    """The digest at the end of a transaction that Apache's server has logged.

    A write that has failed has none.
    """
    version, digest = _LOGGED.unpack(transaction.body[-_LOGGED.size :])
    assert version == VERSION, f"a digest of version {version}"
    return int(digest)


def digest_of(tree: Tree) -> int:
    """The digest of a tree."""
    return sum(_digest(path, znode) for path, znode in tree.nodes.items())


def _digest(path: str, znode: Znode) -> int:
    if path.startswith(NOT_COUNTED):
        return 0
    counters = _COUNTERS.pack(
        znode.czxid,
        znode.mzxid,
        znode.pzxid,
        znode.ctime,
        znode.mtime,
        znode.version,
        znode.created,
        znode.aversion,
        owner_on_disk(znode),
    )
    name = b"" if path == "/" else path.encode("utf-8", "replace")
    return crc32(counters, crc32(znode.data or b"", crc32(name)))
