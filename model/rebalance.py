"""One rebalance, step by step as the design pages number them. Read this first.

The pages, for each consumer Ci of a group:

  1  for each topic T that Ci wants
  2    let PT be all partitions producing T
  3    let CG be all consumers of the group that consume T
  4    sort PT (so that partitions of one broker are together)
  5    sort CG
  6    let i be the position of Ci in CG, and N = size(PT) / size(CG)
  7    assign partitions i*N .. (i+1)*N - 1 to Ci
  8    remove the entries owned by Ci from the owner registry
  9    add the newly assigned partitions to the owner registry
         (it may take several tries until their previous owners let go)

They do not say when Ci stops fetching, when it commits, or what it does if step 9 fails.
The order of the steps, and which form of a step is taken, is the variant's: its row in
`variants` lists them, and `attempt` takes them in that order. A step is a coroutine that
turns what the round knows into what it knows next.

One order matters above all. Whoever still fetches a partition that it has released reads
it together with its next owner; whoever reads an offset before it owns the partition may
begin before the place its last owner reached. So: stop, commit, release; claim, read the
offset, start. `kafka_07` and `kafka_08` keep the first half and swap the second; the
pages have neither half.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from immutables import Map

from model import claims, views
from model.asks import Fetch, Partition, fetch_exactly, forget, known_positions, now_ms
from model.assignment import UnequalSubscriptions
from model.errors import ConnectionLoss, NoNode, SessionExpired, TransactionFailed, ZooKeeperError
from model.member import Round, id_path, registration
from model.offsets import commit_blindly, commit_fenced, read_offsets, to_commit
from model.operations import SetData
from model.registry import BadPayload
from model.variants import Step

ATTEMPT_ERRORS = (ZooKeeperError, BadPayload, UnequalSubscriptions)
"""What fails an attempt without ending the turn: the shipped code caught everything."""


async def attempt(step: Round) -> Round:
    """Take the variant's steps in order until one of them ends the attempt."""
    for name in step.me.variant.steps:
        try:
            step = await STEPS[name](step)
        except (ConnectionLoss, SessionExpired):
            raise
        except ATTEMPT_ERRORS as error:
            return replace(step, stopped=str(error), is_final=_is_final(step, name))
        if step.is_over:
            return step
    return replace(step, succeeded=True)


def _is_final(step: Round, name: Step) -> bool:
    """Whether an error at this step ends the whole rebalance.

    0.7.2 read the cluster outside its loop of attempts, so an error there ended them all.
    A member that waits for watches has one on whatever it could not make sense of.
    """
    if step.me.variant.after_failure == "wait for a watch":
        return True
    return name == "read brokers" and not step.me.variant.cluster_read_is_retried


async def fence(step: Round) -> Round:
    """Raise the version of the own id, so that no earlier request of mine can still succeed.

    After a lost connection a request may be on its way yet. It checks the version it knew;
    once that version is gone, it cannot take effect any more, whenever it arrives.
    """
    if step.memory.guard is not None:
        return step
    path = id_path(step.me, step.memory)
    data = registration(step.me, await now_ms())
    try:
        version = await step.requests(SetData(path, data, purpose="fence"))
    except NoNode:
        lost = replace(step.memory, is_registered=False)
        return replace(step, memory=lost, stopped="the own registration is gone")
    return replace(step, memory=replace(step.memory, guard=version))


async def note_brokers(step: Round) -> Round:
    """Read the brokers; 0.8 takes their absence for success and watches for the first."""
    step = await views.read_brokers(step)
    if step.has_brokers or step.me.variant.release != "0.8.2" or not step.me.variant.is_shipped:
        return step
    waiting = replace(step.memory, sees_no_brokers=True)
    return replace(step, memory=waiting, succeeded=True)


async def stop_all(step: Round) -> Round:
    """Stop fetching, altogether, and wait until that is so."""
    await fetch_exactly(())
    return replace(step, held=step.memory.owned)


async def stop_lost(step: Round) -> Round:
    """Stop fetching what has fallen to others; what I keep is read without a pause."""
    known = frozenset(partition for partition, _ in await known_positions())
    await fetch_exactly(step.fetches(known & frozenset(step.held)))
    return step


async def commit(step: Round) -> Round:
    """Commit where I stand in what I am about to let go of."""
    positions = await known_positions()
    if step.me.variant.fenced:
        wants = step.wants()
        lost = [partition for partition in step.held if partition not in wants]
        if not step.me.settings.auto_commit:
            return step
        return await _commit_fenced(step, to_commit(step.me, positions, lost))
    if step.me.settings.auto_commit or step.me.variant.release == "0.7.2":
        offsets = to_commit(step.me, positions, step.memory.owned)
        await commit_blindly(step.me, step.requests, offsets)
    return step


async def _commit_fenced(step: Round, offsets: list[tuple[Partition, int]]) -> Round:
    try:
        await commit_fenced(step.me, step.memory, step.requests, offsets)
    except TransactionFailed as failed:
        unsure = replace(step.memory, guard=None)
        return replace(step, memory=unsure, stopped=f"the commit was refused: {failed}")
    return step


async def read_starts(step: Round) -> Round:
    """Read where the group stands in the partitions that I have no place in yet."""
    holding = step.me.variant.steps.index("read offsets") > _claim_at(step)
    mine = frozenset(step.held) if holding else step.wants()
    known = frozenset(partition for partition, _ in await known_positions())
    unknown = [one for one, _ in step.wanted if one in mine and one not in known]
    found = await read_offsets(step.me, step.requests, unknown)
    return replace(step, offsets=Map(found))


def _claim_at(step: Round) -> int:
    return next(at for at, name in enumerate(step.me.variant.steps) if name.startswith("9"))


async def start(step: Round) -> Round:
    """Fetch what I have claimed."""
    if step.me.variant.is_shipped:
        step = replace(step, memory=replace(step.memory, owned=step.held))
        missing = _without_broker(step)
        if missing is not None:
            return replace(step, stopped=f"no broker is known for {missing}")
    elif not step.me.variant.fenced:
        await _forget_lost(step)
    await fetch_exactly((*_other_topics(step), *step.fetches(_reachable(step))))
    return step


def _without_broker(step: Round) -> Partition | None:
    """0.7.2 cannot start a fetcher whose broker it did not see when it listed them."""
    if step.me.layout == "0.8":
        return None
    return next((one for one in step.held if not step.address_of(one)), None)


def _reachable(step: Round) -> frozenset[Partition]:
    if step.me.layout == "0.8":
        return frozenset(step.held)
    return frozenset(partition for partition in step.held if step.address_of(partition))


async def _forget_lost(step: Round) -> None:
    owned = frozenset(step.memory.owned)
    positions = await known_positions()
    await forget(partition for partition, _ in positions if partition not in owned)


def _other_topics(step: Round) -> tuple[Fetch, ...]:
    """Topic by topic, what is fetched of the other topics goes on as it was."""
    if step.only_topic is None:
        return ()
    return tuple(
        Fetch(partition, 0, 0, step.address_of(partition))
        for partition in step.memory.owned
        if partition.topic != step.only_topic
    )


STEPS: dict[Step, Callable[[Round], Awaitable[Round]]] = {
    "read self": views.read_self,
    "read brokers": note_brokers,
    "fence": fence,
    "2 read partitions": views.read_partitions,
    "3 read members": views.read_members,
    "4-7 assign": views.assign_shares,
    "read claims": claims.read_claims,
    "stop all": stop_all,
    "stop lost": stop_lost,
    "commit": commit,
    "8 release all": claims.release_all,
    "8 release lost": claims.release_lost,
    "8 release by name": claims.release_by_name,
    "read offsets": read_starts,
    "9 claim one by one": claims.claim_one_by_one,
    "9 claim until released": claims.claim_until_released,
    "9 claim what is free": claims.claim_free,
    "start": start,
}
"""Every form of every step, by the name that the variants' table uses."""
