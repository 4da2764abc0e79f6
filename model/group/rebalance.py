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
`variants` lists them, and `make` takes them in order. A step is a coroutine that adds
to what the attempt has found out.

One order matters above all. Whoever still fetches a partition that it has released reads
it together with its next owner; whoever reads an offset before it owns the partition may
begin before the place its last owner reached. So: stop, commit, release; claim, read the
offset, start. `kafka_07` and `kafka_08` keep the first half and swap the second; the
pages have neither half.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache

from model import claims, flaws, look, views
from model.asks import Fetch, Partition, fetch_exactly, forget, known_positions, now_ms
from model.assignment import UnequalSubscriptions
from model.errors import ConnectionLoss, NoNode, SessionExpired, TransactionFailed, ZooKeeperError
from model.member import Attempt, id_path, registration
from model.offsets import commit_blindly, commit_fenced, read_offsets, to_commit
from model.operations import SetData
from model.registry import BadPayload
from model.variants import Flaw, Step

ATTEMPT_ERRORS = (ZooKeeperError, BadPayload, UnequalSubscriptions)
"""What fails an attempt without ending the turn: the shipped code caught everything."""


async def make(attempt: Attempt, steps: tuple[Step, ...]) -> None:
    """Take these steps in order until one of them ends the attempt."""
    for name in steps:
        try:
            await _form_of(name, attempt.me.variant.flaw)(attempt)
        except (ConnectionLoss, SessionExpired):
            raise
        except ATTEMPT_ERRORS as error:
            attempt.stopped = str(error)
            attempt.is_final = _is_final(attempt, name)
        if attempt.requests.claims_are_gone:
            attempt.requests.claims_are_gone = False
            attempt.remember(owned=())
        if attempt.is_over:
            return
    attempt.succeeded = True


def _form_of(name: Step, flaw: Flaw | None) -> Callable[[Attempt], Awaitable[None]]:
    """How a step is done; a flaw may do it in its own way."""
    if flaw is None:
        return STEPS[name]
    return flaws.FORMS.get((flaw, name), STEPS[name])


def _is_final(attempt: Attempt, name: Step) -> bool:
    """Whether an error at this step ends the whole rebalance.

    0.7.2 read the cluster outside its loop of attempts, so an error there ended them all.
    A member that waits for watches has one on whatever it could not make sense of.
    """
    variant = attempt.me.variant
    if variant.after_failure == "wait for a watch":
        return True
    return name == "read brokers" and not variant.cluster_read_is_retried


async def fence(attempt: Attempt) -> None:
    """Raise the version of the own id, so that no earlier request of mine can still succeed.

    After a lost connection a request may be on its way yet. It checks the version it knew;
    once that version is gone, it cannot take effect any more, whenever it arrives.
    """
    if attempt.memory.guard is not None:
        return
    path = id_path(attempt.me, attempt.memory)
    data = registration(attempt.me, await now_ms())
    try:
        version = await attempt.requests(SetData(path, data, purpose="fence"))
    except NoNode:
        attempt.lose_registration()
        return
    attempt.remember(guard=version)


async def read_brokers(attempt: Attempt) -> None:
    """Read the brokers; 0.8 takes their absence for success and watches for the first."""
    await views.read_brokers(attempt)
    variant = attempt.me.variant
    if not attempt.addresses and variant.is_shipped and variant.release == "0.8.2":
        attempt.remember(sees_no_brokers=True)
        attempt.succeeded = True


async def stop_all(attempt: Attempt) -> None:
    """Stop fetching, altogether, and wait until that is so."""
    await fetch_exactly(())
    attempt.held = attempt.memory.owned


async def stop_lost(attempt: Attempt) -> None:
    """Stop fetching what has fallen to others; what I keep is read without a pause."""
    known = frozenset(partition for partition, _ in await known_positions())
    await fetch_exactly(attempt.fetches(known & frozenset(attempt.held)))


async def commit(attempt: Attempt) -> None:
    """Commit where I stand in what I am about to let go of."""
    me = attempt.me
    if not me.settings.auto_commit and me.variant.release != "0.7.2":
        return
    positions = await known_positions()
    if not me.variant.fenced:
        offsets = to_commit(me, positions, attempt.memory.owned)
        await commit_blindly(me, attempt.requests, offsets)
        return
    try:
        offsets = to_commit(me, positions, attempt.lost())
        await commit_fenced(me, attempt.memory, attempt.requests, offsets)
    except TransactionFailed as failed:
        attempt.remember(guard=None)
        attempt.stopped = f"the commit was refused: {failed}"


async def read_starts(attempt: Attempt) -> None:
    """Read where the group stands in the partitions that I have no place in yet.

    Of all that is to be mine where the offset is read before the claim, of what I have
    claimed where it is read after.
    """
    claims_first = _claims_before_it_reads(attempt.me.variant.steps)
    mine = frozenset(attempt.held) if claims_first else attempt.wants()
    known = frozenset(partition for partition, _ in await known_positions())
    unknown = [one for one, _ in attempt.wanted if one in mine and one not in known]
    attempt.offsets.update(await read_offsets(attempt.me, attempt.requests, unknown))


@lru_cache
def _claims_before_it_reads(steps: tuple[Step, ...]) -> bool:
    """Whether step 9 comes before the offsets are read."""
    claim = next(at for at, name in enumerate(steps) if name.startswith("9"))
    return claim < steps.index("read offsets")


async def start(attempt: Attempt) -> None:
    """Fetch what I have claimed."""
    if attempt.me.variant.is_shipped:
        attempt.remember(owned=attempt.held)
        if len(_reachable(attempt)) < len(attempt.held):
            # 0.7.2 cannot start a fetcher whose broker it did not see when it listed them.
            attempt.stopped = "a broker is not known"
            return
    elif attempt.me.variant.fenced:
        attempt.remember(plan=_plan(attempt))
    else:
        await _forget_lost(attempt)
    await fetch_exactly((*_other_topics(attempt), *attempt.fetches(_reachable(attempt))))


def _plan(attempt: Attempt) -> tuple[tuple[Partition, int, str], ...]:
    return tuple(
        (partition, stream, attempt.address_of(partition)) for partition, stream in attempt.wanted
    )


def _reachable(attempt: Attempt) -> frozenset[Partition]:
    if attempt.me.layout == "0.8":
        return frozenset(attempt.held)
    return frozenset(partition for partition in attempt.held if attempt.address_of(partition))


async def _forget_lost(attempt: Attempt) -> None:
    owned = frozenset(attempt.memory.owned)
    positions = await known_positions()
    await forget(partition for partition, _ in positions if partition not in owned)


def _other_topics(attempt: Attempt) -> tuple[Fetch, ...]:
    """Topic by topic, what is fetched of the other topics goes on as it was."""
    if attempt.only_topic is None:
        return ()
    return tuple(
        Fetch(partition, 0, 0, attempt.address_of(partition))
        for partition in attempt.memory.owned
        if partition.topic != attempt.only_topic
    )


STEPS: dict[Step, Callable[[Attempt], Awaitable[None]]] = {
    "read self": views.read_self,
    "read brokers": read_brokers,
    "fence": fence,
    "2 read partitions": views.read_partitions,
    "3 read members": views.read_members,
    "2-3 look": look.look,
    "4-7 assign": views.assign_shares,
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
    "9 claim what was freed": claims.claim_freed,
    "start": start,
}
"""Every form of every step, by the name that the variants' table uses."""
