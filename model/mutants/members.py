"""The members that make the mistakes: each differs from `GroupMember` in one thing.

A member replaces a step of the rebalance, the way in which it makes requests, a method of
its attempts, or a method of its own.
"""

from __future__ import annotations

from msgspec.structs import replace

from watchkeeper.model.actor.effects import Partition, fetch_exactly, next_event
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.group.consumer import GroupMember
from watchkeeper.model.group.rebalance import STEPS
from watchkeeper.model.group.state import Attempt, Consumer, ConsumerState
from watchkeeper.model.group.variants import Step
from watchkeeper.model.mutants import requests as ways
from watchkeeper.model.mutants import steps as mutated
from watchkeeper.model.mutants.mutation import Mutation
from watchkeeper.model.registry import paths

# --- mutated steps ---------------------------------------------------------------------


class LastClaimDecides(GroupMember):
    """The result of the last claim counts for all of them."""

    steps = STEPS | {Step.CLAIM_FREE: mutated.claim_by_last}


class ForgetsClaimsOfFailedAttempt(GroupMember):
    """Claims that a failed attempt made stay, and the member does not know of them."""

    steps = STEPS | {
        Step.READ_PIPELINED: mutated.read_claims_from_state,
        Step.CLAIM_FREE: mutated.claim_and_forget,
    }


class AssignsUnsorted(GroupMember):
    """Each member assigns the partitions in an order of its own."""

    steps = STEPS | {Step.ASSIGN: mutated.assign_unsorted}


class ReadsPartitionsOnce(GroupMember):
    """The partitions of a topic are read once and cached."""

    steps = STEPS | {Step.READ_PIPELINED: mutated.read_partitions_once}


class NoBrokersIsFailure(GroupMember):
    """Without brokers a rebalance fails, and no watch reports the first of them."""

    steps = STEPS | {Step.READ_PIPELINED: mutated.fail_without_brokers}


class OwnNameIsOwnClaim(GroupMember):
    """A registration or a claim that holds the own name counts as the own one."""

    steps = STEPS | {Step.READ_PIPELINED: mutated.read_claims_by_name}

    def requests_of(self, me: Consumer) -> Requests:
        """Return requests that adopt the registration of another session."""
        return ways.AdoptsRegistration()


class ClaimsFromState(GroupMember):
    """The member claims what its state lacks, whatever the registry says."""

    steps = STEPS | {Step.READ_PIPELINED: mutated.read_claims_from_state}


class DeletesClaimsOfStrangers(GroupMember):
    """A claim that holds the name of no known member is deleted."""

    steps = STEPS | {Step.CLAIM_FREE: mutated.delete_claims_of_strangers}


class AssignsToAllMembers(GroupMember):
    """Every member has a share in every topic, subscribed or not."""

    steps = STEPS | {Step.ASSIGN: mutated.assign_to_all_members}


# --- mutated requests ------------------------------------------------------------------


class NoWatchOnPartitions(GroupMember):
    """No watch reports new partitions of a topic."""

    def requests_of(self, me: Consumer) -> Requests:
        """Return requests that set no watch on topics."""
        return ways.TopicsUnwatched()


class WatchesAfterRead(GroupMember):
    """The members are read first, and watched at the end of the reads."""

    steps = STEPS | {Step.READ_PIPELINED: mutated.watch_after_read}

    def requests_of(self, me: Consumer) -> Requests:
        """Return requests that set no watch while the members are read."""
        return ways.MembersUnwatched()


class CommitsUnfenced(GroupMember):
    """Commits do not check the version of the own registration."""

    def requests_of(self, me: Consumer) -> Requests:
        """Return requests that take the fence out of commits."""
        return ways.UnfencedCommits()


class FirstAnswerDecides(GroupMember):
    """The first failure of a batch counts for the whole batch."""

    def requests_of(self, me: Consumer) -> Requests:
        """Return requests that judge a batch by its first answer."""
        return ways.FirstAnswerDecides()


class FiltersNotEscaped(GroupMember):
    """A filter is written into the registration without JSON escapes."""

    def requests_of(self, me: Consumer) -> Requests:
        """Return requests that take the escapes out of a registration."""
        return ways.UnescapedFilters()


# --- mutated attempts ------------------------------------------------------------------


class PositionsKept(Attempt):
    """An attempt that forgets no position."""

    async def forget_positions(self, partitions: object) -> None:
        """Keep the positions in partitions that another member may own."""


class PositionsOutliveRelease(GroupMember):
    """A partition that comes back is fetched from the member's own old position."""

    attempt_class = PositionsKept


class ClaimedByPosition(Attempt):
    """An attempt whose claims name the position of a broker in place of its id."""

    def owner_path(self, partition: Partition) -> str:
        """Return a path with the position of the broker among the brokers of the topic."""
        return paths.owner(self.me.group, self._names().get(partition, partition))

    def by_position(self) -> None:
        """Translate the claims that were read back to broker ids."""
        partitions = {name: partition for partition, name in self._names().items()}
        self.claimed = tuple(partitions.get(partition, partition) for partition in self.claimed)

    def _names(self) -> dict[Partition, Partition]:
        """Return partition -> the name under which it is claimed."""
        names = {}
        for topic, found in self.partitions.items():
            brokers = sorted({paths.broker_of(partition) for partition in found.partitions})
            for partition in found.partitions:
                index = int(partition.name.partition("-")[2])
                position = brokers.index(paths.broker_of(partition))
                names[partition] = paths.partition_07(topic, position, index)
        return names


async def _read_claims_by_position(attempt: Attempt) -> None:
    assert isinstance(attempt, ClaimedByPosition), "its member makes attempts of this class"
    await STEPS[Step.READ_PIPELINED](attempt)
    attempt.by_position()
    attempt.update(owned=attempt.claimed)


class ClaimsByPosition(GroupMember):
    """The path of a claim changes when a broker comes or goes."""

    attempt_class = ClaimedByPosition
    steps = STEPS | {Step.READ_PIPELINED: _read_claims_by_position}


# --- mutated turns ---------------------------------------------------------------------


class DropsEventsOfRebalance(GroupMember):
    """Watches that fired during a rebalance are dropped at its end."""

    async def after_success(
        self, me: Consumer, before: ConsumerState, attempt: Attempt, requests: Requests
    ) -> ConsumerState:
        """Drop the watches that have fired; take the first event of another kind."""
        after = await super().after_success(me, before, attempt, requests)
        while isinstance(notification := await next_event(0), Fired):
            pass
        return await self.take(me, after, requests, notification)


class GivesUp(GroupMember):
    """A limited number of attempts, after which the member waits for another event."""

    steps = STEPS | {Step.CLAIM_FREE: mutated.claim_or_fail}

    async def after_failure(
        self, me: Consumer, before: ConsumerState, attempt: Attempt, requests: Requests
    ) -> ConsumerState:
        """Count the attempts, and give up after the last one."""
        count = attempt.state.attempt + 1
        if count >= me.settings.rebalance_retries:
            return replace(attempt.state, attempt=0)
        return replace(attempt.state, attempt=count, is_dirty=True)


class FailedAttemptLeavesNoState(GroupMember):
    """What a failed attempt has found out is lost with it."""

    async def after_failure(
        self, me: Consumer, before: ConsumerState, attempt: Attempt, requests: Requests
    ) -> ConsumerState:
        """Go on from the state before the attempt."""
        attempt.state = before
        return await super().after_failure(me, before, attempt, requests)


class ResumesAfterDisconnect(GroupMember):
    """After a lost connection the member goes on, though its watches are gone."""

    async def reconnected(
        self, me: Consumer, state: ConsumerState, requests: Requests
    ) -> ConsumerState:
        """Fetch as before, and read nothing again."""
        if state.is_dirty:
            return await super().reconnected(me, state, requests)
        attempt = self.attempt_class(me, state, requests)
        attempt.take_plan()
        await fetch_exactly(attempt.fetches(state.owned))
        return replace(state, is_connected=True)


class FenceNotRaised(GroupMember):
    """A request that was lost with its connection can still take effect."""

    async def after_connection_loss(self, me: Consumer, state: ConsumerState) -> ConsumerState:
        """Keep the fence version, so that the next rebalance does not raise it."""
        after = await super().after_connection_loss(me, state)
        return replace(after, fence_version=state.fence_version)


class ClaimsOutliveSession(GroupMember):
    """After an expiry the member believes in the claims of the session before."""

    steps = STEPS | {
        Step.READ_PIPELINED: mutated.read_claims_and_state,
        Step.CLAIM_FREE: mutated.claim_missing,
    }

    async def after_expiry(self, me: Consumer, state: ConsumerState) -> ConsumerState:
        """Keep the claims in the state."""
        return replace(await super().after_expiry(me, state), owned=state.owned)


MEMBERS: dict[Mutation, GroupMember] = {
    Mutation.LAST_CLAIM_DECIDES: LastClaimDecides(),
    Mutation.FORGETS_CLAIMS_OF_FAILED_ATTEMPT: ForgetsClaimsOfFailedAttempt(),
    Mutation.DROPS_EVENTS_OF_REBALANCE: DropsEventsOfRebalance(),
    Mutation.ASSIGNS_UNSORTED: AssignsUnsorted(),
    Mutation.READS_PARTITIONS_ONCE: ReadsPartitionsOnce(),
    Mutation.NO_WATCH_ON_PARTITIONS: NoWatchOnPartitions(),
    Mutation.NO_BROKERS_IS_FAILURE: NoBrokersIsFailure(),
    Mutation.GIVES_UP: GivesUp(),
    Mutation.OWN_NAME_IS_OWN_CLAIM: OwnNameIsOwnClaim(),
    Mutation.CLAIMS_BY_POSITION: ClaimsByPosition(),
    Mutation.CLAIMS_OUTLIVE_SESSION: ClaimsOutliveSession(),
    Mutation.CLAIMS_FROM_STATE: ClaimsFromState(),
    Mutation.RESUMES_AFTER_DISCONNECT: ResumesAfterDisconnect(),
    Mutation.COMMITS_UNFENCED: CommitsUnfenced(),
    Mutation.FENCE_NOT_RAISED: FenceNotRaised(),
    Mutation.FAILED_ATTEMPT_LEAVES_NO_STATE: FailedAttemptLeavesNoState(),
    Mutation.FIRST_ANSWER_DECIDES: FirstAnswerDecides(),
    Mutation.POSITIONS_OUTLIVE_RELEASE: PositionsOutliveRelease(),
    Mutation.DELETES_CLAIMS_OF_STRANGERS: DeletesClaimsOfStrangers(),
    Mutation.WATCHES_AFTER_READ: WatchesAfterRead(),
    Mutation.ASSIGNS_TO_ALL_MEMBERS: AssignsToAllMembers(),
    Mutation.FILTERS_NOT_ESCAPED: FiltersNotEscaped(),
}
"""The member that makes each mistake."""
