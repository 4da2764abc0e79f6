"""A second, naive implementation of ZooKeeper to compare with: dicts, lists and loops.

It shares nothing with `model.zookeeper` and ignores speed: it was written independently, from the
observed behaviour of a real server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

from watchkeeper.model.actor.operations import (
    OPEN,
    Acl,
    AddWatch,
    Check,
    CheckWatches,
    CountDescendants,
    Create,
    Delete,
    DeleteContainer,
    Exists,
    GetAcl,
    GetChildren,
    GetEphemerals,
    Multi,
    MultiRead,
    Operation,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
)

R, W, C, D, A = 1, 2, 4, 8, 16


# --- Java ------------------------------------------------------------------------------


def java_hash(text: str) -> int:
    """`String.hashCode()` of Java."""
    units = [
        int.from_bytes(raw, "big") for raw in re.findall(b"(?s)..", text.encode("utf-16-be"))
    ]
    return sum(unit * 31 ** (len(units) - 1 - at) for at, unit in enumerate(units)) % 2**32


class JavaSet:
    """A `HashSet<String>` of Java: buckets, doubled when more than three quarters full."""

    def __init__(self, capacity: int) -> None:
        self.buckets: list[list[str]] = [[] for _ in range(capacity)]

    def __iter__(self) -> Iterator[str]:
        return (name for bucket in self.buckets for name in bucket)

    def __len__(self) -> int:
        return sum(map(len, self.buckets))

    def add(self, name: str) -> None:
        """Add a name that is not in the set."""
        self._bucket(name).append(name)
        if len(self) > len(self.buckets) * 0.75:
            names = list(self)
            self.buckets = [[] for _ in range(2 * len(self.buckets))]
            for child in names:
                self._bucket(child).append(child)

    def remove(self, name: str) -> None:
        """Remove a name."""
        self._bucket(name).remove(name)

    def clone(self) -> JavaSet:
        """A copy whose table has the smallest sufficient size."""
        capacity = 1
        while capacity < int(len(self) / 0.75 + 1):
            capacity *= 2
        copy = JavaSet(capacity)
        for name in self:
            copy.add(name)
        return copy

    def _bucket(self, name: str) -> list[str]:
        spread = java_hash(name)
        return self.buckets[(spread ^ spread >> 16) & (len(self.buckets) - 1)]


# --- paths -----------------------------------------------------------------------------

GOOD_PATH = re.compile(
    r"/|(/(?!\.{1,2}(/|\Z))[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]+)+"
)


def is_good(path: str) -> bool:
    """Whether a write to this path is not refused because of its path."""
    return GOOD_PATH.fullmatch(path) is not None


def split(path: str) -> tuple[str, str]:
    """Parent and name, split at the last slash."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


# --- access ----------------------------------------------------------------------------

Identities = list[tuple[str, str]]
DIGEST = re.compile(r"[^:]*:[^:]+:*")


def is_granted(acl: Any, right: int, identities: Identities) -> bool:
    """Whether the list gives the right to one who has these identities."""
    return any(
        entry.scheme == "world"
        or any(is_meant(entry, scheme, name) for scheme, name in identities)
        for entry in acl
        if entry.permissions & right
    )


def is_meant(entry: Acl, scheme: str, name: str) -> bool:
    """Whether an entry is for this identity."""
    if (entry.scheme, scheme) == ("ip", "ip"):
        return ip_address(name) in ip_network(entry.identity, strict=False)
    return (entry.scheme, entry.identity) == (scheme, name)


def stored(acl: Any, identities: Identities) -> tuple[Acl, ...]:
    """The list that a znode gets; empty if it is refused."""
    kept: list[Acl] = []
    for at, entry in enumerate(acl):
        if entry in acl[:at]:
            continue
        proved = [pair for pair in identities if pair[0] == "digest"]
        if entry.scheme == "auth" and proved:
            kept += [Acl(entry.permissions, scheme, name) for scheme, name in proved]
        elif is_known(entry):
            kept.append(entry)
        else:
            return ()
    return tuple(kept)


def is_known(entry: Acl) -> bool:
    """Whether an entry can be stored as it is."""
    if entry.scheme == "digest":
        return DIGEST.fullmatch(entry.identity) is not None
    if entry.scheme == "ip":
        try:
            ip_network(entry.identity, strict=False)
        except ValueError:
            return False
        return True
    return (entry.scheme, entry.identity) == ("world", "anyone")


# --- the service -----------------------------------------------------------------------


class Wrong(Exception):
    """An operation failed; the first argument is the name of the error."""


class Node:
    """A znode."""

    def __init__(self, data: bytes | None, owner: int, acl: Any, zxid: int, now_ms: int) -> None:
        self.data = data
        self.owner = owner
        self.lifetime = 0
        self.acl = acl
        self.version = self.aversion = self.created = self.deleted = 0
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime = self.mtime = now_ms
        self.children = JavaSet(8)

    def stat(self) -> dict[str, int]:
        """Every field of its Stat."""
        return {
            "czxid": self.czxid,
            "mzxid": self.mzxid,
            "ctime": self.ctime,
            "mtime": self.mtime,
            "version": self.version,
            "cversion": self.created + self.deleted,
            "aversion": self.aversion,
            "ephemeral_owner": self.owner,
            "data_length": len(self.data or b""),
            "num_children": len(self.children),
            "pzxid": self.pzxid,
        }

    def copy(self) -> Node:
        """An independent copy."""
        twin = Node(self.data, self.owner, self.acl, 0, 0)
        twin.__dict__.update(self.__dict__)
        twin.children = JavaSet(len(self.children.buckets))
        twin.children.buckets = [list(bucket) for bucket in self.children.buckets]
        return twin


class Oracle:
    """The service."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.zxid = 0
        self.sessions: dict[int, JavaSet] = {}
        """Session -> the paths of its ephemerals."""
        self.watches: list[tuple[int, str, str]] = []
        """(session, kind, path), in the order in which they were set."""
        self.identities: dict[int, Identities] = {}
        self.fired: list[tuple[int, str, str]] = []
        """(session, type, path) of the current operation."""
        for path in ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
            self.nodes[path] = Node(b"", 0, OPEN, 0, 0)
            if path != "/":
                parent, name = split(path)
                self.nodes[parent].children.add(name)
        # Znodes that a server creates itself do not count as created.
        self.nodes["/"].deleted = -1
        self.nodes["/zookeeper"].deleted = -2
        self.nodes["/zookeeper/config"].acl = (Acl(R),)
        self.nodes["/zookeeper/config"].aversion = -1

    # --- what can be asked -------------------------------------------------------------

    def do(self, session: int, operation: Operation[Any], now_ms: int) -> Any:
        """Perform an operation; return its answer or the name of its failure; set `fired`."""
        self.fired = []
        writes = isinstance(
            operation, Create | Delete | SetData | SetAcl | Multi | DeleteContainer
        )
        if writes:
            self.zxid += 1
        before = self._saved() if writes else None
        try:
            return self._answer(session, operation, now_ms)
        except Wrong as wrong:
            if before is not None:
                self.nodes, self.sessions, self.watches = before
                self.fired = []
            return wrong.args[0]

    def open(self, session: int) -> None:
        """Open a session."""
        self.zxid += 1
        self.sessions[session] = JavaSet(16)

    def close(self, session: int) -> tuple[str, ...]:
        """End a session; return the paths that it deleted, in order."""
        self.fired = []
        self.zxid += 1
        doomed = tuple(self.sessions[session].clone())
        for path in doomed:
            self._remove(path)
        del self.sessions[session]
        self.drop_connection(session)
        return doomed

    def drop_connection(self, session: int) -> None:
        """Break a connection."""
        self.watches = [watch for watch in self.watches if watch[0] != session]
        self.identities.pop(session, None)

    def prove(self, session: int, scheme: str, name: str) -> None:
        """Give a connection an identity."""
        known = self.identities.setdefault(session, [])
        if (scheme, name) not in known:
            known.append((scheme, name))

    def due(self, now_ms: int) -> list[str]:
        """The containers and the znodes with a TTL that a server would delete now."""
        return sorted(
            path
            for path, node in self.nodes.items()
            if len(node.children) == 0
            and (
                (node.lifetime == -1 and node.created > 0)
                or (node.lifetime > 0 and now_ms > node.mtime + node.lifetime)
            )
        )

    # --- writes ------------------------------------------------------------------------

    def _answer(self, session: int, operation: Any, now_ms: int) -> Any:
        if isinstance(operation, Multi):
            return self._multi(session, operation, now_ms)
        if isinstance(operation, Create):
            return self._create(session, operation, now_ms)
        if isinstance(operation, Delete):
            return self._delete(session, operation)
        if isinstance(operation, DeleteContainer):
            return self._delete_container(operation)
        if isinstance(operation, SetData):
            node = self._to_write(session, operation, W)
            node.data = operation.data
            node.version += 1
            node.mzxid, node.mtime = self.zxid, now_ms
            self._tell("changed", operation.path, node)
            return node.version
        if isinstance(operation, SetAcl):
            return self._set_acl(session, operation)
        return self._read(session, operation)

    def _multi(self, session: int, multi: Multi, now_ms: int) -> Any:
        answers = []
        for index, part in enumerate(multi.operations):
            try:
                if isinstance(part, Check):
                    self._to_write(session, part, R)
                    answers.append(None)
                else:
                    answers.append(self._answer(session, part, now_ms))
            except Wrong as wrong:
                raise Wrong(f"{index}: {wrong.args[0]}") from None
        return tuple(answers)

    def _create(self, session: int, operation: Create, now_ms: int) -> str:
        path = operation.path
        lifetime = operation.lifetime_ms
        self._demand(-1 <= lifetime < 2**40, "BadArguments")
        self._demand("/" in path and "\0" not in path, "BadArguments")
        acl = stored(operation.acl, self._who(session))
        self._demand(bool(acl), "InvalidACL")
        parent_path, _ = split(path)
        self._demand(parent_path in self.nodes, "NoNode")
        parent = self.nodes[parent_path]
        self._demand_right(session, parent, C)
        if operation.sequential:
            path += str(parent.created).zfill(10)
        self._demand(is_good(path), "BadArguments")
        self._demand(path not in self.nodes, "NodeExists")
        self._demand(parent.owner == 0, "NoChildrenForEphemerals")
        owner = session if operation.ephemeral else 0
        self.nodes[path] = Node(operation.data, owner, acl, self.zxid, now_ms)
        self.nodes[path].lifetime = lifetime
        parent.children.add(split(path)[1])
        parent.created += 1
        parent.pzxid = self.zxid
        if owner:
            self.sessions[owner].add(path)
        self._tell("created", path, self.nodes[path])
        return path

    def _delete(self, session: int, operation: Delete) -> None:
        path = operation.path
        parent_path = self._parent_of_doomed(path)
        self._demand(parent_path in self.nodes, "NoNode")
        self._demand_right(session, self.nodes[parent_path], D)
        self._demand(path in self.nodes, "NoNode")
        node = self.nodes[path]
        self._demand(operation.version in (-1, node.version), "BadVersion")
        self._demand(len(node.children) == 0, "NotEmpty")
        self._remove(path)

    def _delete_container(self, operation: DeleteContainer) -> None:
        path = operation.path
        self._parent_of_doomed(path)
        self._demand(path in self.nodes, "NoNode")
        self._demand(len(self.nodes[path].children) == 0, "NotEmpty")
        self._demand(self.nodes[path].owner == 0, "BadVersion")
        self._remove(path)

    def _parent_of_doomed(self, path: str) -> str:
        reserved = ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
        self._demand("/" in path and "\0" not in path and path not in reserved, "BadArguments")
        return split(path)[0]

    def _remove(self, path: str) -> None:
        node = self.nodes.pop(path)
        parent_path, name = split(path)
        parent = self.nodes[parent_path]
        parent.children.remove(name)
        parent.deleted += 1
        parent.pzxid = self.zxid
        if node.owner:
            self.sessions[node.owner].remove(path)
        self._tell("deleted", path, node)

    def _set_acl(self, session: int, operation: SetAcl) -> int:
        self._demand(is_good(operation.path), "BadArguments")
        acl = stored(operation.acl, self._who(session))
        self._demand(bool(acl), "InvalidACL")
        self._demand(operation.path in self.nodes, "NoNode")
        node = self.nodes[operation.path]
        self._demand_right(session, node, A)
        self._demand(operation.version in (-1, node.aversion), "BadVersion")
        node.acl = acl
        node.aversion += 1
        return node.aversion

    def _to_write(self, session: int, operation: Any, right: int) -> Node:
        self._demand(is_good(operation.path), "BadArguments")
        self._demand(operation.path in self.nodes, "NoNode")
        node = self.nodes[operation.path]
        self._demand_right(session, node, right)
        self._demand(operation.version in (-1, node.version), "BadVersion")
        return node

    # --- reads -------------------------------------------------------------------------

    def _read(self, session: int, operation: Any) -> Any:
        path = operation.path
        if isinstance(operation, Sync):
            return path
        if isinstance(operation, GetEphemerals):
            every = path.strip() in ("", "/")
            return frozenset(
                below for below in self.sessions[session] if every or below.startswith(path)
            )
        if isinstance(operation, MultiRead):
            return tuple(self._part_of_multi_read(session, part) for part in operation.operations)
        if isinstance(operation, AddWatch):
            self._leave(session, "recursive" if operation.recursive else "persistent", path)
            return None
        if isinstance(operation, RemoveWatches | CheckWatches):
            kind = operation.kind
            own = [
                watch
                for watch in self.watches
                if (watch[0], watch[2]) == (session, path) and kind in ("any", watch[1])
            ]
            self._demand(bool(own), "NoWatcher")
            if isinstance(operation, RemoveWatches):
                self.watches = [watch for watch in self.watches if watch not in own]
            return None
        node = self.nodes.get(path or "/")
        if isinstance(operation, Exists):
            self._demand("\0" not in path, "BadArguments")
            if node is not None:
                self._demand_right(session, node, R)
        else:
            self._demand(node is not None, "NoNode")
            assert node is not None
            self._demand_right(session, node, R | A if isinstance(operation, GetAcl) else R)
        if getattr(operation, "watch", False):
            self._leave(session, "child" if isinstance(operation, GetChildren) else "data", path)
        if node is None:
            return None
        if isinstance(operation, GetAcl):
            return self._shown_acl(session, node)
        if isinstance(operation, CountDescendants):
            top = path if path not in ("", "/") else ""
            count = sum(at.startswith(f"{top}/") for at in self.nodes)
            return count - 1 if path == "/" else count
        if isinstance(operation, GetChildren):
            return tuple(node.children)
        return node.data, node.version, node.owner == session, node.stat()

    def _part_of_multi_read(self, session: int, part: Any) -> Any:
        before = list(self.watches)
        try:
            return self._read(session, part)
        except Wrong as wrong:
            return wrong.args[0]
        finally:
            self.watches = before

    # --- access ------------------------------------------------------------------------

    def _who(self, session: int) -> Identities:
        return self.identities.get(session, [])

    def _demand_right(self, session: int, node: Node, right: int) -> None:
        self._demand(is_granted(node.acl, right, self._who(session)), "NoAuth")

    def _shown_acl(self, session: int, node: Node) -> tuple[Acl, ...]:
        if is_granted(node.acl, A, self._who(session)):
            return tuple(node.acl)
        return tuple(
            Acl(entry.permissions, "digest", entry.identity.split(":")[0] + ":x")
            if entry.scheme == "digest"
            else entry
            for entry in node.acl
        )

    # --- watches -----------------------------------------------------------------------

    def _leave(self, session: int, kind: str, path: str) -> None:
        if (session, kind, path) not in self.watches:
            self.watches.append((session, kind, path))

    def _tell(self, what: str, path: str, node: Node) -> None:
        self._fire(what, path, node, once=("data", "child") if what == "deleted" else ("data",))
        if what != "changed":
            parent, _ = split(path)
            self._fire("children changed", parent, self.nodes[parent], once=("child",))

    def _fire(self, what: str, path: str, node: Node, *, once: tuple[str, ...]) -> None:
        notified = set()
        for watch in list(self.watches):
            session, kind, at = watch
            if kind in once and at == path:
                self.watches.remove(watch)
                notified.add(session)
            elif (kind == "persistent" and at == path) or (
                kind == "recursive"
                and what != "children changed"
                and at != ""  # a read takes it for the root, a watch does not
                and (path == at or path.startswith(at.rstrip("/") + "/"))
            ):
                notified.add(session)
        self.fired.extend(
            (session, what, path)
            for session in sorted(notified)
            if is_granted(node.acl, R, self._who(session))
        )

    # --- all or nothing ----------------------------------------------------------------

    def _saved(self) -> Any:
        nodes = {path: node.copy() for path, node in self.nodes.items()}
        sessions = {}
        for session, paths in self.sessions.items():
            sessions[session] = JavaSet(len(paths.buckets))
            sessions[session].buckets = [list(bucket) for bucket in paths.buckets]
        return nodes, sessions, list(self.watches)

    @staticmethod
    def _demand(condition: bool, otherwise: str) -> None:
        if not condition:
            raise Wrong(otherwise)
