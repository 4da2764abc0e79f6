"""The mistakes that mutants make."""

from __future__ import annotations

from enum import StrEnum


class Mutation(StrEnum):
    """A mistake in the code of a group member; `catalogue` names its origin."""

    LAST_CLAIM_DECIDES = "the last claim decides"
    FORGETS_CLAIMS_OF_FAILED_ATTEMPT = "the claims of a failed attempt are forgotten"
    DROPS_EVENTS_OF_REBALANCE = "events that arrive during a rebalance are dropped"
    ASSIGNS_UNSORTED = "partitions are assigned unsorted"
    READS_PARTITIONS_ONCE = "partitions are read once"
    NO_WATCH_ON_PARTITIONS = "no watch on the partitions of a topic"
    NO_BROKERS_IS_FAILURE = "the absence of brokers is a failure"
    GIVES_UP = "attempts run out"
    OWN_NAME_IS_OWN_CLAIM = "a claim that holds the own name is the own claim"
    CLAIMS_BY_POSITION = "the path of a claim depends on a position in a list"
    CLAIMS_OUTLIVE_SESSION = "claims outlive their session"
    CLAIMS_FROM_STATE = "claims are taken from the state, not from the registry"
    RESUMES_AFTER_DISCONNECT = "resumes after a lost connection as before"
    COMMITS_UNFENCED = "commits are not fenced"
    FENCE_NOT_RAISED = "the fence is not raised"
    FAILED_ATTEMPT_LEAVES_NO_STATE = "a failed attempt leaves no state"
    FIRST_ANSWER_DECIDES = "the first answer of a batch decides"
    POSITIONS_OUTLIVE_RELEASE = "positions outlive the release of a partition"
    DELETES_CLAIMS_OF_STRANGERS = "claims of unknown members are deleted"
    WATCHES_AFTER_READ = "the watch is set after the read"
    ASSIGNS_TO_ALL_MEMBERS = "every member has a share in every topic"
    FILTERS_NOT_ESCAPED = "filters are not escaped"
