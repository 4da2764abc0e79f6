"""The counterexample of a search of replicas as a value, with the proof in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from watchkeeper.checker.replication.partition import (
    UNAWARE,
    LeaderAndIsr,
    Partition,
    Replica,
    Steps,
    believes_to_lead,
)
from watchkeeper.checker.replication.search import MEMBERS, Result, step_between
from watchkeeper.model.counterexample.replicas import (
    Breach,
    LeaderRequest,
    ReplicasCounterexample,
    ReplicasState,
    ReplicasStep,
    ReplicaState,
    Role,
)
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import Record


def counterexample_of(result: Result, name: str) -> ReplicasCounterexample:
    """Return the shortest way to violate a property; KeyError where none was found."""
    path = result.paths[name]
    steps = Steps(result.variant, result.bounds)
    last = path[-1]
    breaches = tuple(breaches_in(last, name))
    return ReplicasCounterexample(
        variant=result.variant.name,
        rule=result.variant.truncation.name,
        violates=name,
        proof=proof_of(last, name, breaches[0]),
        bound=str(result.bounds),
        first=state_of(steps, path[0]),
        steps=tuple(_steps(steps, path)),
        breaches=breaches,
    )


def _steps(steps: Steps, path: tuple[Partition, ...]) -> Iterator[ReplicasStep]:
    for number, (before, after) in enumerate(pairwise(path), 1):
        text = step_between(steps, before, after).text
        fault = "".join(fault.value for fault in before.left - after.left)
        yield ReplicasStep(number, text, fault, state_of(steps, after))


# --- states ----------------------------------------------------------------------------


def state_of(steps: Steps, state: Partition) -> ReplicasState:
    """Return a state as a value for reports."""
    sent = sorted(state.sent, key=lambda request: (request.epoch, request.leader))
    return ReplicasState(
        replicas=tuple(_replica(at, replica) for at, replica in enumerate(state.replicas)),
        registry=_request(state.cell, ()),
        requests=tuple(_request(one, steps.takers(state, one)) for one in sent),
        faults=tuple(sorted(fault.value for fault in state.left)),
    )


def _replica(number: int, replica: Replica) -> ReplicaState:
    believes = replica.believes
    role: Role = "follows"
    if believes == UNAWARE:
        role = "knows no leader"
    elif believes.leader == NO_LEADER:
        role = "waits for a leader"
    elif believes.leader == number:
        role = "leads"
    return ReplicaState(
        role=role,
        follows=believes.leader if role == "follows" else None,
        epoch=None if role == "knows no leader" else believes.epoch,
        isr=tuple(sorted(believes.isr)) if role == "leads" else (),
        log=tuple((record.number, record.epoch) for record in replica.log),
        high_watermark=replica.high_watermark,
        awaits_reply=replica.is_changing,
    )


def _request(said: LeaderAndIsr, open_to: tuple[int, ...]) -> LeaderRequest:
    leader = None if said.leader == NO_LEADER else said.leader
    return LeaderRequest(said.epoch, leader, tuple(sorted(said.isr)), open_to)


# --- the violation ---------------------------------------------------------------------


def breaches_in(state: Partition, name: str) -> Iterator[Breach]:
    """Yield where a state violates a property: a leader, a member, and the first offset."""
    if name not in MEMBERS:
        if state.cell.leader not in state.cell.isr | {NO_LEADER}:
            yield Breach(state.cell.leader)
        return
    for number, leader in enumerate(state.replicas):
        if not believes_to_lead(state, number):
            continue
        for member in sorted(MEMBERS[name](state, number)):
            log = state.replicas[member].log
            for offset, record in enumerate(leader.log[: leader.high_watermark]):
                if log[offset : offset + 1] != (record,):
                    yield Breach(number, member, offset)
                    break


def proof_of(state: Partition, name: str, breach: Breach) -> str:
    """Say why a state violates a property."""
    if breach.member is None:
        isr = _names(state.cell.isr)
        return f"in ZooKeeper the leader is replica {breach.leader}, and the ISR is {isr}"
    leader, member = state.replicas[breach.leader], state.replicas[breach.member]
    is_registry = name == "strong ISR"
    members = _names(state.cell.isr if is_registry else leader.believes.isr)
    whose = "in ZooKeeper" if is_registry else "of this leader"
    return (
        f"replica {breach.leader}, which leads in epoch {leader.believes.epoch}, has committed "
        f"{_record(leader.log[breach.offset])} at offset {breach.offset}; replica "
        f"{breach.member} is in the ISR {members} {whose} and has "
        f"{_found(member, breach.offset)} there"
    )


def _found(member: Replica, offset: int) -> str:
    return _record(member.log[offset]) if offset < len(member.log) else "nothing"


def _record(record: Record) -> str:
    return f"record {record.number} of epoch {record.epoch}"


def _names(isr: frozenset[int]) -> str:
    return "{" + ", ".join(map(str, sorted(isr))) + "}"
