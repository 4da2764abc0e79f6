"""One rebalance, step by step as the design pages number them.

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
The variant decides the order of the steps and the form of each: its row in `variants` lists
them, `STEPS` maps each to a coroutine function, and `take_steps` runs them in order. A step
adds to what the attempt has found out.

One order matters above all. A member that still fetches a partition after releasing it reads
it together with the next owner. A member that reads an offset before it owns the partition
may start before the last commit of the previous owner. So: stop, commit, release; claim,
read the offset, start. `kafka_07` and `kafka_08` keep the first half and swap the second;
the pages have neither half.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache

from watchkeeper.model.actor.effects import (
    Fetch,
    Partition,
    fetch_exactly,
    forget,
    known_positions,
    now_ms,
)
from watchkeeper.model.actor.errors import (
    ConnectionLoss,
    NoNode,
    SessionExpired,
    TransactionFailed,
    ZooKeeperError,
)
from watchkeeper.model.actor.operations import SetData
from watchkeeper.model.group import claims, pipelined_reads, reads
from watchkeeper.model.group.assignment import UnequalSubscriptions
from watchkeeper.model.group.coordinator_client import CoordinatorUnavailable
from watchkeeper.model.group.offset_stores import commit_offsets, commit_once, read_offsets
from watchkeeper.model.group.offsets import to_commit
from watchkeeper.model.group.state import Attempt, id_path, registration
from watchkeeper.model.group.variants import CLAIM_STEPS, AfterFailure, Step
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.topic_filter import BadFilter

StepFunction = Callable[[Attempt], Awaitable[None]]

ATTEMPT_ERRORS = (ZooKeeperError, BadPayload, BadFilter, UnequalSubscriptions)
"""Errors that fail an attempt without ending the turn. The shipped code caught everything."""


async def take_steps(
    attempt: Attempt, steps: tuple[Step, ...], functions: Mapping[Step, StepFunction]
) -> None:
    """Take these steps in order until one of them ends the attempt.

    ConnectionLoss and SessionExpired are raised; every other error of a step fails the
    attempt.
    """
    for step in steps:
        try:
            await functions[step](attempt)
        except (ConnectionLoss, SessionExpired):
            raise
        except CoordinatorUnavailable as error:
            attempt.stopped = str(error)
            attempt.lacks_coordinator = True
            attempt.update(coordinator="")
        except ATTEMPT_ERRORS as error:
            attempt.stopped = str(error)
            attempt.is_final = _is_final(attempt, step)
        if attempt.requests.claims_are_gone:
            # A retried request went on in a new session: the old one's claims are deleted.
            attempt.requests.claims_are_gone = False
            attempt.update(owned=())
        if attempt.stopped or attempt.succeeded:
            return
    attempt.succeeded = True


def _is_final(attempt: Attempt, step: Step) -> bool:
    """Whether an error at this step ends the whole rebalance.

    0.7.2 read the cluster outside its loop of attempts, so an error there ended them all.
    A member that waits for watches has one on every znode that it could not decode.
    """
    variant = attempt.me.variant
    if variant.after_failure is AfterFailure.WAIT_FOR_WATCH:
        return True
    return step is Step.READ_BROKERS and not variant.cluster_read_is_retried


async def fence(attempt: Attempt) -> None:
    """Raise the version of the own registration, so that no earlier write can succeed.

    After a lost connection a write may still be under way. It checks the version known when
    it was sent; once the version is raised, that check fails whenever the write arrives.
    """
    if attempt.state.fence_version is not None:
        return
    path = id_path(attempt.me, attempt.state)
    data = registration(attempt.me, await now_ms())
    try:
        version = await attempt.requests(SetData(path, data, purpose="fence"))
    except NoNode:
        attempt.lose_registration()
        return
    attempt.update(fence_version=version)


async def read_brokers(attempt: Attempt) -> None:
    """Read the brokers; 0.8 succeeds without any, and watches for the first."""
    await reads.read_brokers(attempt)
    variant = attempt.me.variant
    if not attempt.addresses and variant.is_shipped and variant.release == "0.8.2":
        attempt.update(sees_no_brokers=True)
        attempt.succeeded = True


async def stop_all(attempt: Attempt) -> None:
    """Stop all fetching, and wait until it has stopped."""
    await fetch_exactly(())
    attempt.claimed = attempt.state.owned


async def stop_lost(attempt: Attempt) -> None:
    """Stop fetching the partitions assigned to others; the others go on without a pause."""
    known = frozenset([partition for partition, _ in await known_positions()])
    await fetch_exactly(attempt.fetches(known & frozenset(attempt.claimed)))


async def commit(attempt: Attempt) -> None:
    """Commit the positions in the partitions that are about to be released."""
    me = attempt.me
    if not me.settings.auto_commit and me.variant.release != "0.7.2":
        return
    positions = await known_positions()
    if not me.variant.fenced:
        offsets = to_commit(me, positions, attempt.state.owned)
        attempt.state = await commit_once(me, attempt.state, attempt.requests, offsets)
        return
    try:
        offsets = to_commit(me, positions, attempt.lost())
        attempt.state = await commit_offsets(me, attempt.state, attempt.requests, offsets)
    except TransactionFailed as failed:
        attempt.update(fence_version=None)
        attempt.stopped = f"the commit was refused: {failed}"


async def read_starts(attempt: Attempt) -> None:
    """Read the committed offsets of the partitions without a known position.

    Of all assigned partitions where the variant reads before it claims; of the claimed ones
    where it claims first.
    """
    claims_first = _claims_before_it_reads(attempt.me.variant.steps)
    of_interest = frozenset(attempt.claimed) if claims_first else attempt.assigned_partitions()
    known = frozenset([partition for partition, _ in await known_positions()])
    unknown = [
        partition
        for partition, _ in attempt.assigned
        if partition in of_interest and partition not in known
    ]
    await read_offsets(attempt, unknown)


@lru_cache
def _claims_before_it_reads(steps: tuple[Step, ...]) -> bool:
    """Whether the variant claims before it reads the offsets."""
    claim = next(at for at, step in enumerate(steps) if step in CLAIM_STEPS)
    return claim < steps.index(Step.READ_OFFSETS)


async def start(attempt: Attempt) -> None:
    """Fetch the claimed partitions."""
    if attempt.me.variant.is_shipped:
        attempt.update(owned=attempt.claimed)
        if len(_reachable(attempt)) < len(attempt.claimed):
            # 0.7.2 cannot start a fetcher whose broker it did not see when it listed them.
            attempt.stopped = "a broker is not known"
            return
    elif attempt.me.variant.fenced:
        attempt.update(plan=tuple(attempt.addressed()))
    else:
        await _forget_lost(attempt)
    await fetch_exactly((*_other_topics(attempt), *attempt.fetches(_reachable(attempt))))


def _reachable(attempt: Attempt) -> frozenset[Partition]:
    if attempt.me.layout == "0.8":
        return frozenset(attempt.claimed)
    return frozenset(filter(attempt.address_of, attempt.claimed))


async def _forget_lost(attempt: Attempt) -> None:
    owned = frozenset(attempt.state.owned)
    positions = await known_positions()
    await forget(partition for partition, _ in positions if partition not in owned)


def _other_topics(attempt: Attempt) -> tuple[Fetch, ...]:
    """Where topics are rebalanced one by one, the other topics are fetched as before."""
    if attempt.only_topic is None:
        return ()
    return tuple(
        Fetch(partition, 0, 0, attempt.address_of(partition))
        for partition in attempt.state.owned
        if partition.topic != attempt.only_topic
    )


STEPS: dict[Step, StepFunction] = {
    Step.READ_SELF: reads.read_self,
    Step.READ_BROKERS: read_brokers,
    Step.FENCE: fence,
    Step.READ_PARTITIONS: reads.read_partitions,
    Step.READ_MEMBERS: reads.read_members,
    Step.READ_PIPELINED: pipelined_reads.read_in_batches,
    Step.ASSIGN: reads.assign_shares,
    Step.STOP_ALL: stop_all,
    Step.STOP_LOST: stop_lost,
    Step.COMMIT: commit,
    Step.RELEASE_ALL: claims.release_all,
    Step.RELEASE_LOST: claims.release_lost,
    Step.RELEASE_BY_NAME: claims.release_by_name,
    Step.READ_OFFSETS: read_starts,
    Step.CLAIM_ONE_BY_ONE: claims.claim_one_by_one,
    Step.CLAIM_UNTIL_RELEASED: claims.claim_until_released,
    Step.CLAIM_FREE: claims.claim_free,
    Step.CLAIM_FREED: claims.claim_freed,
    Step.START: start,
}
"""Every step and its function."""
