"""States as TLC prints them, as partitions.

A state is a conjunction, `/\\ variable = value` for each variable. Values are numbers, strings,
names, sets `{a, b}`, tuples `<<a, b>>`, records `[name |-> a]`, functions `(a :> b @@ c :> d)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from watchkeeper.checker.replication.partition import LeaderAndIsr, Partition, Replica
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import Record

_TOKEN = re.compile(r'\s*(\|->|:>|@@|/\\|<<|>>|-?\d+|"[^"]*"|\w+|[\[\](){},=])')
_CLOSES = {"{": "}", "<<": ">>", "[": "]", "(": ")"}
_BINDS = {"[": "|->", "(": ":>"}
NONE = "NONE"


class UnreadableState(ValueError):
    """A text is no state of the models."""


class _Reader:
    """Reads values from tokens."""

    def __init__(self, text: str) -> None:
        self.tokens = self._split(text)
        self.at = 0

    @staticmethod
    def _split(text: str) -> list[str]:
        tokens, at = [], 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise UnreadableState(f"TLA+ value expected at {text[at : at + 40]!r}")
            tokens.append(found[1])
            at = found.end()
        return tokens

    def next(self, *expected: str) -> str:
        """Take the next token; it has to be one of those expected, if any are."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else "the end"
        if expected and token not in expected:
            raise UnreadableState(f"{' or '.join(expected)} expected, not {token}")
        self.at += 1
        return token

    def is_at(self, token: str) -> bool:
        """Whether this is the next token."""
        return self.at < len(self.tokens) and self.tokens[self.at] == token

    def value(self) -> Any:
        """Read a value: int, str, list of a set or a tuple, dict of a record or a function."""
        token = self.next()
        if token in _BINDS:
            return dict(self._bindings(_CLOSES[token], _BINDS[token]))
        if token in _CLOSES:
            return list(self._members(_CLOSES[token]))
        if token.startswith('"'):
            return token[1:-1]
        return int(token) if token.lstrip("-").isdigit() else token

    def _members(self, closes: str) -> Iterator[Any]:
        while not self.is_at(closes):
            yield self.value()
            if not self.is_at(closes):
                self.next(",")
        self.next(closes)

    def _bindings(self, closes: str, binds: str) -> Iterator[tuple[Any, Any]]:
        while not self.is_at(closes):
            name = self.value()
            self.next(binds)
            yield name, self.value()
            if not self.is_at(closes):
                self.next(",", "@@")
        self.next(closes)


def variables_of(text: str) -> dict[str, Any]:
    """Read a state: variable -> value.

    Raises UnreadableState where the text is no state.
    """
    reader = _Reader(text)
    found = {}
    while reader.at < len(reader.tokens):
        reader.next("/\\")
        name = reader.next()
        reader.next("=")
        found[name] = reader.value()
    return found


def partition_of(text: str) -> Partition:
    """Return the partition that a printed state of a published model stands for.

    Raises UnreadableState where the text is no state of these models.
    """
    variables = variables_of(text)
    try:
        return _partition(variables)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableState(f"no state of a replicated partition: {error!r}") from error


def _partition(variables: dict[str, Any]) -> Partition:
    states, logs = variables["replicaState"], variables["replicaLog"]
    names = sorted(states, key=_number)
    cell = _leader_and_isr(variables["quorumState"])
    if variables["nextLeaderEpoch"] != cell.epoch + 1:
        raise ValueError("the next leader epoch does not follow from the state of the quorum")
    return Partition(
        tuple(
            Replica(_log(logs[name]), states[name]["hw"], _leader_and_isr(states[name]))
            for name in names
        ),
        cell,
        frozenset(map(_leader_and_isr, variables["leaderAndIsrRequests"])),
        variables["nextRecordId"],
    )


def _log(value: dict[str, Any]) -> tuple[Record, ...]:
    records = [value["records"][offset] for offset in range(value["endOffset"])]
    return tuple(Record(record["epoch"], record["id"]) for record in records)


def _leader_and_isr(value: dict[str, Any]) -> LeaderAndIsr:
    leader = NO_LEADER if value["leader"] == NONE else _number(value["leader"])
    return LeaderAndIsr(value["leaderEpoch"], leader, frozenset(map(_number, value["isr"])))


def _number(name: str) -> int:
    """The number of a replica from its name."""
    return int(name.removeprefix("r"))
