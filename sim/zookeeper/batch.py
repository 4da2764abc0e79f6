"""A pipelined batch at a server: many operations in one message, an answer to each."""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, cast

from watchkeeper.model.actor.operations import WRITES, GetData, Operation, Sync

if TYPE_CHECKING:
    from watchkeeper.sim.zookeeper.connection import Connection, Request
    from watchkeeper.sim.zookeeper.server import Server


class Batch:
    """A pipelined batch: its writes follow one another closely, its reads wait for them."""

    __slots__ = (
        "answers",
        "at",
        "connection",
        "operations",
        "pending",
        "request",
        "server",
        "zxid",
    )

    def __init__(
        self,
        server: Server,
        connection: Connection,
        request: Request,
        operations: tuple[Operation[Any], ...],
    ) -> None:
        self.server = server
        self.connection = connection
        self.request = request
        self.operations = operations
        self.answers: list[Any] = [None] * len(operations)
        self.at = 0
        self.pending = 0
        self.zxid = 0

    def go_on(self) -> None:
        """Do what can be done now, and reply when all of it is done."""
        server, operations, answers = self.server, self.operations, self.answers
        reads = 0
        if server.behind:
            server.take_over(server.generation)  # first: it changes the watches, too
        watches = server.watches
        while self.at < len(operations):
            at = self.at
            operation = operations[at]
            kind = type(operation)
            if kind in WRITES:
                self._submit(at, operation)
            elif self.pending:
                break
            elif kind is Sync and server.state == "following":
                self._sync(at, operation.path)
            else:
                is_awake = server.watches is not watches
                if kind is GetData:
                    run = self._data_reads_from(at)
                    found = server.look_at_data(self.connection, run, is_awake=is_awake)
                    answers[at : at + len(run)] = found
                    reads += len(run)
                    self.at += len(run)
                    continue
                answers[at] = server.look(self.connection, operation, is_awake=is_awake)
                reads += 1
            self.at += 1
        done_us = server.spend(reads * server.kernel.profile.read_us)
        if self.at == len(operations) and not self.pending:
            server.reply(self.connection, self.request, tuple(self.answers), done_us, self.zxid)

    def _data_reads_from(self, first: int) -> list[GetData]:
        """Return the reads of data from this place on, up to the first other operation."""
        _, run = next(groupby(islice(self.operations, first, None), type))
        return cast(list[GetData], list(run))

    def _sync(self, index: int, path: str) -> None:
        self.pending += 1
        self.server.ensemble.sync(self.server, lambda: self._done(index, path))

    def _done(self, index: int, answer: Any) -> None:
        self.answers[index] = answer
        self.pending -= 1
        if not self.pending:
            self.go_on()

    def _submit(self, index: int, operation: Operation[Any]) -> None:
        self.pending += 1

        def done(answer: Any, zxid: int) -> None:
            self.zxid = zxid
            self._done(index, answer)

        self.server.write(self.connection, operation, done)
