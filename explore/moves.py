"""Everything that one process can do next, and everything that can befall it.

What has to come sooner or later is free: the answer to a request, a note that is under way,
a broken connection that is noticed, a client that comes back, the end of a session that
nobody keeps alive, a request that was left behind. What need not come is a fault, and drawn
from the budget. A pause that ends, a timer that runs out and a message that is read may
come any number of times, and nobody waits for them.

  fault          what befalls
  crash          the process is gone; its session ends later, or after the next life began
  restart        a process that is gone starts again under the same id
  join           a process that was absent starts
  leave          it is told to leave
  expire         the service ends the session; the client learns of it later
  disconnect     the connection breaks; a request under way was done or was not
  lost_request   it breaks, and the request under way was not done
  lost_reply     it breaks, and the request under way was done
  ghost          a disconnection whose request may also be done at any time from now on
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from explore.local import Cast, Fetching, Kind, Local, hears, missed, without_connection
from explore.process import Process, fetching_exactly, heard_before
from explore.service import Done, Service
from model.answers import LEAVE, SessionNote
from model.asks import CloseSession, FetchExactly, NextNote
from model.errors import ConnectionLoss, Failure
from model.operations import (
    WRITES,
    Exists,
    GetChildren,
    GetData,
    GetEphemerals,
    Operation,
    Pipelined,
)


class Step(NamedTuple):
    """A move, by values: what is done, and tree and process afterwards."""

    does: str
    tree: int
    local: Local
    cast: Cast = ()
    fault: str = ""
    is_idle: bool = False
    about: Any = None
    """The operation it is about, if there is one."""
    answer: Any = None
    deleted: tuple[tuple[str, int], ...] = ()
    followed_by: tuple[tuple[Operation[Any], Any], ...] = ()
    """Reads that were folded into it, each with its answer."""
    is_left: bool = False
    """Whether it is of a request or a session that was left behind."""


class Moves:
    """The moves of one process."""

    def __init__(
        self,
        process: Process,
        service: Service,
        faults: frozenset[str],
        *,
        resends: bool,
        messages: int = 0,
        is_settled: Callable[[str], bool] | None = None,
    ) -> None:
        self.process = process
        self.service = service
        self.faults = faults
        """Those that may befall this process."""
        self.resends = resends
        """Whether its client leaves its watches again when it is connected again."""
        self.messages = messages
        """How many there are to be read in each partition."""
        self.is_settled = is_settled
        """Says of a path that nobody will write there any more; None where nothing is folded."""

    def all(self, tree: int, local: Local) -> Iterator[Step]:
        """Every move; reads that cannot clash with anybody's doing follow in the same step."""
        for step in self._all(tree, local):
            if step.fault or self.is_settled is None:
                yield step
            else:
                yield from self._folded(step)

    def _folded(self, step: Step) -> Iterator[Step]:
        """A step and the settled reads after it; faults may befall before each of these."""
        while self._reads_what_is_settled(step.local):
            ask = self.process.ask(step.local)
            for fault in self._befalling(step.tree, step.local):
                if fault.fault != "crash":
                    yield _then(step, fault)
            read = self._operates(step.tree, step.local, ask)
            step = step._replace(
                local=read.local, followed_by=(*step.followed_by, (read.about, read.answer))
            )
        yield step

    def _reads_what_is_settled(self, local: Local) -> bool:
        """Whether what is asked for next gives the same answer now and later."""
        if local.phase != "running" or local.link != "up" or not local.is_alive:
            return False
        ask = self.process.ask(local)
        if not isinstance(ask, Operation | Pipelined):
            return False
        operation = _next_of(local, ask)
        if isinstance(operation, GetEphemerals):
            return not local.ghosts
        assert self.is_settled is not None, "nothing is folded without knowing what is settled"
        return type(operation) not in WRITES and self.is_settled(operation.path)

    def _all(self, tree: int, local: Local) -> Iterator[Step]:
        yield from self._of_what_is_left(tree, local)
        if local.phase == "absent":
            yield from self._start(tree, local, "join")
        elif local.phase == "gone":
            yield from self._start(tree, local, "restart")
        elif local.phase == "running":
            yield from self._at_work(tree, local)
            yield from self._befalling(tree, local)

    def _of_what_is_left(self, tree: int, local: Local) -> Iterator[Step]:
        """Sessions of earlier lives end; requests that were left behind arrive."""
        for session in local.orphans:
            done = self.service.end(tree, session)
            others = tuple(one for one in local.orphans if one != session)
            ghosts = tuple(one for one in local.ghosts if one[0] != session)
            left = hears(replace(local, orphans=others, ghosts=ghosts), done.cast)
            yield Step("session ends", done.tree, left, done.cast, is_left=True)
        if local.ghosts:
            session, operation = local.ghosts[0]
            done = self.service.apply(tree, session, operation)
            after = hears(replace(local, ghosts=local.ghosts[1:]), done.cast)
            yield _done("arrives late", done, after, operation)._replace(is_left=True)

    def _start(self, tree: int, local: Local, fault: str) -> Iterator[Step]:
        if fault in self.faults:
            life = local.life + (fault == "restart")
            yield Step("starts", tree, self.process.begun(local, life), fault=fault)

    # --- what its program asks for -----------------------------------------------------

    def _at_work(self, tree: int, local: Local) -> Iterator[Step]:
        ask = self.process.ask(local)
        if local.link == "down":
            yield self._connects(tree, local)
        elif local.link == "up" and not local.is_alive:
            yield from self._finds_out(tree, local, ask)
        elif isinstance(ask, Operation | Pipelined):
            yield self._operates(tree, local, ask)
        if isinstance(ask, NextNote):
            yield from self._waits(tree, local, ask)
        elif isinstance(ask, FetchExactly):
            stopped = self.process.answered(fetching_exactly(local, ask), None)
            yield Step("stops fetching", tree, stopped)
        elif isinstance(ask, CloseSession) and local.link == "up" and local.is_alive:
            done = self.service.end(tree, local.session)
            ghosts = tuple(one for one in local.ghosts if one[0] != local.session)
            closed = replace(
                local, link="none", is_alive=False, watches=frozenset(), ghosts=ghosts
            )
            after = self.process.answered(closed, None)
            yield Step("closes its session", done.tree, after, done.cast)
        yield from self._reads(tree, local)

    def _waits(self, tree: int, local: Local, ask: NextNote) -> Iterator[Step]:
        if local.channel:
            heard = replace(local, inbox=local.channel[:1], channel=local.channel[1:])
            yield Step("hears", tree, self.process.settled(heard), about=local.channel[0])
        if ask.timeout_ms == 0:
            yield Step("hears nothing yet", tree, self.process.answered(local, None))
        elif ask.timeout_ms is not None and not local.channel:
            after = self.process.answered(local, None)
            if after != local:
                yield Step("is woken by its timer", tree, after, is_idle=True)

    def _reads(self, tree: int, local: Local) -> Iterator[Step]:
        """One message more of a partition that it fetches."""
        for place, one in enumerate(local.fetches):
            if one.stream >= 0 and one.at < self.messages:
                further = Fetching(one.partition, one.at + 1, one.stream)
                fetches = (*local.fetches[:place], further, *local.fetches[place + 1 :])
                read = replace(local, fetches=fetches)
                yield Step("reads a message", tree, read, is_idle=True, about=one.partition)

    def _operates(self, tree: int, local: Local, ask: Any) -> Step:
        """The request under way, or the next one of the batch, is done and answered."""
        operation = _next_of(local, ask)
        done, after = self._effect(tree, local, operation)
        if type(ask) is Pipelined:
            answers = (*after.batch, done.answer)
            known = after.known if local.batch else len(local.inbox)
            after = replace(after, batch=answers, known=known)
            if len(answers) < len(ask.operations):
                return _done("is answered", done, after, operation)
            after = heard_before(after, ask, answers)
            return _done("is answered", done, self.process.answered(after, answers), operation)
        after = heard_before(after, ask, done.answer)
        return _done("is answered", done, self.process.answered(after, done.answer), operation)

    def _effect(self, tree: int, local: Local, operation: Operation[Any]) -> tuple[Done, Local]:
        """What an operation does to the tree, and to the watches of whoever asks for it."""
        done = self.service.apply(tree, local.session, operation)
        local = hears(local, done.cast)
        if getattr(operation, "watch", False) and type(done.answer) is not Failure:
            assert isinstance(operation, Exists | GetData | GetChildren), "only reads do that"
            kind: Kind = "child" if isinstance(operation, GetChildren) else "data"
            if done.answer is None:
                kind = "exist"
            local = replace(local, watches=local.watches | {(kind, operation.path)})
        return done, local

    # --- the connection and the session ------------------------------------------------

    def _connects(self, tree: int, local: Local) -> Step:
        """The client is back: in its session, or to learn that it is dead."""
        if not local.is_alive:
            return Step("learns that its session is dead", tree, self._expired(local))
        fired = missed(self.service.trees[tree], local)
        kept = local.watches.difference(watch for watch, event in fired if event is not None)
        up = replace(
            local,
            link="up",
            inbox=(*local.inbox, SessionNote.CONNECTED),
            channel=tuple(event for _, event in fired if event is not None),
            watches=kept,
            touched=frozenset(),
        )
        return Step("is connected again", tree, self.process.settled(up))

    def _expired(self, local: Local) -> Local:
        told = replace(
            local,
            link="expired",
            inbox=(*local.inbox, *local.channel, SessionNote.EXPIRED),
            channel=(),
            watches=frozenset(),
            touched=frozenset(),
        )
        return self.process.settled(told)

    def _finds_out(self, tree: int, local: Local, ask: Any) -> Iterator[Step]:
        """The service has closed the connection of a dead session."""
        yield Step("is disconnected", tree, self._cut(local))
        if isinstance(ask, Operation | Pipelined):
            yield Step("is told that its session is dead", tree, self._expired(local))

    def _cut(self, local: Local) -> Local:
        """The connection is broken: the request under way fails, and the program is told."""
        cut = without_connection(local, resends=self.resends)
        cut = replace(cut, inbox=(*local.inbox, SessionNote.SUSPENDED))
        ask = self.process.ask(local)
        if isinstance(ask, Operation | Pipelined):
            path = "" if type(ask) is Pipelined else ask.path  # type: ignore[union-attr]
            return self.process.answered(cut, Failure(ConnectionLoss, path, sent=True))
        return self.process.settled(cut)

    # --- faults ------------------------------------------------------------------------

    def _befalling(self, tree: int, local: Local) -> Iterator[Step]:
        faults = self.faults
        if "crash" in faults:
            gone = Local("gone", local.life, orphans=local.sessions, ghosts=local.ghosts)
            yield Step("is killed", tree, gone, fault="crash")
        if "leave" in faults and LEAVE not in local.inbox:
            told = replace(local, inbox=(*local.inbox, LEAVE))
            yield Step("is told to leave", tree, self.process.settled(told), fault="leave")
        if "expire" in faults and local.is_alive:
            done = self.service.end(tree, local.session)
            ghosts = tuple(one for one in local.ghosts if one[0] != local.session)
            watches = frozenset() if local.link == "up" else local.watches
            dead = replace(local, is_alive=False, ghosts=ghosts, watches=watches)
            yield Step("loses its session", done.tree, dead, done.cast, fault="expire")
        if local.link == "up" and local.is_alive:
            yield from self._breaking(tree, local)

    def _breaking(self, tree: int, local: Local) -> Iterator[Step]:
        """The connection breaks, with a request under way or without."""
        ask = self.process.ask(local)
        drops = [name for name in ("disconnect", "ghost") if name in self.faults]
        if not isinstance(ask, Operation | Pipelined):
            for fault in drops[:1]:
                yield Step("is disconnected", tree, self._cut(local), fault=fault)
            return
        left = _left_of(local, ask)
        for fault in (*drops, *(("lost_request",) if "lost_request" in self.faults else ())):
            yield Step("loses a request", tree, self._cut(local), fault=fault, about=left[0])
        for fault in (*drops, *(("lost_reply",) if "lost_reply" in self.faults else ())):
            yield from self._loses_reply(tree, local, left[0], fault)
        writes = tuple((local.session, one) for one in left if type(one) in WRITES)
        if "ghost" in self.faults and writes:
            cut = self._cut(local)
            ghost = replace(cut, ghosts=(*cut.ghosts, *writes))
            yield Step("leaves a request behind", tree, ghost, fault="ghost", about=left[0])

    def _loses_reply(
        self, tree: int, local: Local, operation: Operation[Any], fault: str
    ) -> Iterator[Step]:
        """The same as a lost request where nothing was done."""
        if type(operation) not in WRITES:
            return
        done = self.service.apply(tree, local.session, operation)
        if type(done.answer) is not Failure:
            cut = self._cut(hears(local, done.cast))
            yield _done("loses a reply", done, cut, operation)._replace(fault=fault)


def _then(step: Step, fault: Step) -> Step:
    """A step with a fault at its heels; what was answered before that is told as reads."""
    first = ((step.about, step.answer),) if isinstance(step.about, Operation) else ()
    return fault._replace(
        does=f"{step.does}, then {fault.does}",
        cast=(*step.cast, *fault.cast),
        followed_by=(*first, *step.followed_by),
    )


def _next_of(local: Local, ask: Any) -> Operation[Any]:
    if type(ask) is Pipelined:
        operation: Operation[Any] = ask.operations[len(local.batch)]
        return operation
    return ask  # type: ignore[no-any-return]


def _left_of(local: Local, ask: Any) -> tuple[Operation[Any], ...]:
    return ask.operations[len(local.batch) :] if type(ask) is Pipelined else (ask,)


def _done(does: str, done: Done, local: Local, operation: Operation[Any]) -> Step:
    return Step(
        does,
        done.tree,
        local,
        done.cast,
        about=operation,
        answer=done.answer,
        deleted=done.deleted,
    )
