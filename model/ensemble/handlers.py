"""What a server does with each kind of request, once it is its turn.

Seen on Apache ZooKeeper 3.9.5: a write that cannot be read, or a reconfiguration that is
refused, takes a zxid like every write that fails; a read that cannot be read takes none. An
authentication is answered with zxid 0, and a failed one ends the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from watchkeeper.model.actor.errors import (
    AuthFailed,
    Failure,
    MarshallingError,
    NoNode,
    NotReadOnly,
    NoWatcher,
    ReconfigDisabled,
    SessionExpired,
    SessionMoved,
    TransactionFailed,
    Unimplemented,
)
from watchkeeper.model.actor.operations import (
    AddWatch,
    CheckWatches,
    CountDescendants,
    Create,
    Delete,
    DeleteContainer,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    MultiRead,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
)
from watchkeeper.model.ensemble import authentication
from watchkeeper.model.wire.fields import MISSING
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.replies import (
    failed_multi_body,
    multi_body,
    multi_read_body,
    reply_body,
)
from watchkeeper.model.wire.requests import (
    PING_XID,
    Auth,
    CloseSession,
    Ping,
    Reconfig,
    Request,
    Sasl,
    SetWatches,
    Undecodable,
    Unknown,
    WhoAmI,
    WithoutPath,
)
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.standalone import serve
from watchkeeper.model.zookeeper.watches import set_watches

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.connection import Connection
    from watchkeeper.model.ensemble.entry import Entry

NO_ZXID, UNKNOWN_ZXID = 0, -1
"""The zxids in the answers to an authentication and to an unknown request."""
MISSED = -1
"""The zxid of an event that tells of a change before the watch was set again."""
MOVED = "its session goes on at another server"


def handle(connection: Connection, request: Request) -> None:
    """Serve a request; the answer comes at once or when a write has been applied."""
    if connection.server.is_read_only:
        _handle_read_only(connection, request)
    else:
        _HANDLERS[type(request.body)](connection, request)


def handle_late(connection: Connection, request: Request) -> None:
    """Execute a request that was lost with its connection, for its effect alone."""
    if is_write(request) and type(request.body) is not CloseSession:
        connection.server.or_at_leader(lambda: _submit(connection, request, None))
        connection.server.ensemble.flush()


def is_write(request: Request) -> bool:
    """Whether a request goes to the leader, and need not wait for answers to earlier ones."""
    return type(request.body) in _ORDERED


# --- reads -----------------------------------------------------------------------------


def _read(connection: Connection, request: Request) -> None:
    server = connection.server
    operation = request.body
    if server.has_moved(connection, is_write=False):
        connection.hang_up(MOVED)
        return
    server.watches, answer = serve(
        server.tree,
        server.watches,
        connection.session,
        connection.number,
        operation,
        connection.identities,
    )
    if type(answer) is Failure:
        connection.answer(request, answer.kind.code)
    elif answer is None and type(operation) is Exists:
        connection.answer(request, NoNode.code)
    else:
        znode = server.tree.nodes.get(operation.path or "/")
        connection.answer(request, body=reply_body(request.opcode, answer, znode))


def _read_several(connection: Connection, request: Request) -> None:
    parts = request.body.operations
    connection.answer(request, body=multi_read_body(parts, _results(connection, parts)))


def _results(connection: Connection, parts: tuple[GetData | GetChildren, ...]) -> Any:
    server = connection.server
    _, answers = serve(
        server.tree,
        server.watches,
        connection.session,
        connection.number,
        MultiRead(parts),
        connection.identities,
    )
    return answers


def _read_ephemerals(connection: Connection, request: Request) -> None:
    """The specification sorts them; a server lists them as its hash table does."""
    tree = connection.server.tree
    prefix = request.body.path
    paths = writes.ephemerals_of(tree, connection.session)
    shown = [path for path in paths if not prefix.strip() or path.startswith(prefix)]
    connection.answer(request, body=reply_body(request.opcode, shown))


def _sync(connection: Connection, request: Request) -> None:
    connection.begin()
    server = connection.server

    def applied() -> None:
        connection.answer(request, body=reply_body(request.opcode, request.body.path))
        connection.finish()

    server.or_at_leader(lambda: server.once_applied(applied))


def _without_path(connection: Connection, request: Request) -> None:
    if request.opcode == Opcode.SYNC:
        connection.answer(request, body=MISSING)
    elif request.opcode == Opcode.ADD_WATCH:
        connection.answer(request, body=reply_body(request.opcode, None))
    else:
        connection.answer(request, NoWatcher.code)


def _ping(connection: Connection, request: Request) -> None:
    # Whatever xid a client gives it, the answer has the xid of pings.
    connection.answer(replace(request, xid=PING_XID))


def _set_watches(connection: Connection, request: Request) -> None:
    server = connection.server
    wanted: SetWatches = request.body
    server.watches, missed = set_watches(
        server.watches, server.tree, connection.number, wanted.wanted, wanted.relative_zxid
    )
    for event in missed:
        connection.notify(event, MISSED)
    connection.answer(request)


def _who_am_i(connection: Connection, request: Request) -> None:
    shown = authentication.shown(connection.identities)
    connection.answer(request, body=reply_body(request.opcode, shown))


# --- writes ----------------------------------------------------------------------------


def _write(connection: Connection, request: Request) -> None:
    server = connection.server
    if server.has_moved(connection, is_write=True):
        connection.hang_up(MOVED)
        if not server.is_deposed:  # the leader refuses the write, which takes a zxid
            _refuse_write(connection, request, Failure(SessionMoved))
        return
    done = _begun(connection, request)
    server.or_at_leader(lambda: _submit(connection, request, done))


def _begun(connection: Connection, request: Request) -> Callable[[Entry], None]:
    """Begin a write; returns the call that answers it once it has been applied."""
    connection.begin()

    def done(entry: Entry) -> None:
        _answer_write(connection, request, entry)
        connection.finish()

    return done


def _submit(
    connection: Connection, request: Request, done: Callable[[Entry], None] | None
) -> None:
    connection.server.ensemble.submit(
        request.body,
        request.opcode,
        session=connection.session,
        xid=request.xid,
        identities=connection.identities,
        origin=connection.server,
        done=done,
    )


def _answer_write(connection: Connection, request: Request, entry: Entry) -> None:
    answer = entry.written.answer
    if type(answer) is not Failure:
        connection.answer(request, body=_body_of(request, entry), zxid=entry.zxid)
    elif answer.cause is not None and answer.cause.kind is MarshallingError:
        # The part could not be decoded, and with it the multi.
        connection.answer(request, MarshallingError.code, zxid=entry.zxid)
    elif answer.kind is TransactionFailed:
        body = failed_multi_body(answer, len(request.parts))
        connection.answer(request, body=body, zxid=entry.zxid)
    elif answer.kind is SessionExpired:
        connection.hang_up("its session has ended")
    else:
        connection.answer(request, answer.kind.code, zxid=entry.zxid)


def _body_of(request: Request, entry: Entry) -> bytes:
    operation, written = request.body, entry.written
    if type(operation) is Multi:
        return multi_body(request.parts, written)
    path = written.answer if type(operation) is Create else operation.path
    return reply_body(request.opcode, written.answer, written.tree.nodes.get(path))


def _close_session(connection: Connection, request: Request) -> None:
    connection.begin()
    server = connection.server

    def closed(entry: Entry) -> None:
        connection.answer(request, zxid=entry.zxid)

    server.or_at_leader(
        lambda: server.ensemble.close_session(
            connection.session, xid=request.xid, origin=server, done=closed
        )
    )


# --- refusals and identities -----------------------------------------------------------


def _refuse_write(connection: Connection, request: Request, failure: Failure) -> None:
    """A write that cannot succeed is ordered all the same: it takes a zxid."""
    server = connection.server
    done = _begun(connection, request)
    server.or_at_leader(
        lambda: server.ensemble.refuse(
            failure,
            session=connection.session,
            xid=request.xid,
            origin=server,
            done=done,
        )
    )


def _refuse_undecodable(connection: Connection, request: Request) -> None:
    if request.body.is_ordered:
        _refuse_write(connection, request, Failure(MarshallingError))
    elif request.opcode in (Opcode.AUTH, Opcode.SASL):
        connection.hang_up(f"its credential cannot be decoded: {request.body.reason}")
    elif (parts := request.body.reads) is not None:
        body = multi_read_body(parts, _results(connection, parts))
        connection.answer(request, MarshallingError.code, body=body)
    else:
        connection.answer(request, MarshallingError.code)


def _refuse_reconfig(connection: Connection, request: Request) -> None:
    _refuse_write(connection, request, Failure(ReconfigDisabled))


def _pass_over_sasl(connection: Connection, request: Request) -> None:
    # A server for which SASL is not set up answers each token with no token.
    if request.body.token is None:
        connection.hang_up("a SASL request has no token")
    else:
        connection.answer(request, body=MISSING, zxid=NO_ZXID)


def _refuse_unknown(connection: Connection, request: Request) -> None:
    connection.answer(request, Unimplemented.code, zxid=UNKNOWN_ZXID)
    connection.hang_up(f"the request has the unknown opcode {int(request.opcode)}")


def _authenticate(connection: Connection, request: Request) -> None:
    identity = authentication.identity_of(request.body, connection.host)
    if identity is None:
        connection.answer(request, AuthFailed.code, zxid=NO_ZXID)
        connection.hang_up(
            f"the scheme {request.body.scheme!r} or its credential is not accepted"
        )
        return
    if identity not in connection.identities:
        connection.identities = (*connection.identities, identity)
    connection.answer(request, zxid=NO_ZXID)


# --- without a leader ------------------------------------------------------------------


def _handle_read_only(connection: Connection, request: Request) -> None:
    """What needs the leader is refused; a session that only this server knows can end here."""
    body = request.body
    if type(body) is CloseSession:
        connection.server.sessions.remove(connection.session)
        connection.answer(request)
        connection.hang_up("its client has closed the session")
    elif type(body) in _LEADERS or (type(body) is Undecodable and body.is_ordered):
        connection.answer(request, NotReadOnly.code)
    else:
        _HANDLERS[type(body)](connection, request)


_ORDERED = frozenset({Create, Delete, SetData, SetAcl, Multi, DeleteContainer, CloseSession})
_LEADERS = _ORDERED | {Sync, Reconfig}

_HANDLERS: dict[type[Any], Callable[[Connection, Request], None]] = {
    **dict.fromkeys((Create, Delete, SetData, SetAcl, Multi, DeleteContainer), _write),
    **dict.fromkeys((Exists, GetData, GetAcl, GetChildren), _read),
    GetEphemerals: _read_ephemerals,
    CountDescendants: _read,
    **dict.fromkeys((AddWatch, RemoveWatches, CheckWatches), _read),
    MultiRead: _read_several,
    Sync: _sync,
    Ping: _ping,
    CloseSession: _close_session,
    SetWatches: _set_watches,
    WhoAmI: _who_am_i,
    Auth: _authenticate,
    Reconfig: _refuse_reconfig,
    Sasl: _pass_over_sasl,
    WithoutPath: _without_path,
    Undecodable: _refuse_undecodable,
    Unknown: _refuse_unknown,
}
"""Body of a request -> what a server does with it."""
