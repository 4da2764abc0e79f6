"""The mutant catalogue: known mistakes, each made by one variant of a sound protocol.

A mutant differs from its base in one answer or one mutation. Its configuration is one in
which a search of every interleaving finds the violation, while the base violates nothing of
the kind there. So the table shows what such a search can find. `mutant` defines a mutant,
`members` has the code of the mutations.
"""

from __future__ import annotations

from watchkeeper.model.group.variants import DOCUMENTED, KAFKA_08, OwnIdInUse, Step
from watchkeeper.model.mutants.mutant import Configuration, bounded, mutant_of
from watchkeeper.model.mutants.mutation import Mutation
from watchkeeper.model.properties.at_quiescence import CONSENSUS, COVER
from watchkeeper.model.properties.ownership import MONOTONE, OWN_NODES, TRUTHFUL
from watchkeeper.model.properties.progress import PROGRESS

TWO = Configuration(members=2, brokers=2)
"""Two members that share two partitions."""
ALONE = Configuration()
"""One member with one partition."""

_ROWS = (
    # Kafka
    mutant_of(
        "kafka-262-last-claim",
        "KAFKA-262: the results of the claims were folded so that only the last one counted",
        "whether its claims succeeded is what the last of them says",
        TRUTHFUL,
        Configuration(members=2, topics=(("clicks", 3),)),
        mutation=Mutation.LAST_CLAIM_DECIDES,
    ),
    mutant_of(
        "kafka-286-claims-kept",
        "KAFKA-286: a failed attempt left the claims that it had made, and forgot them",
        "the claims of a failed attempt stay, and their owner does not know of them",
        PROGRESS,
        TWO,
        mutation=Mutation.FORGETS_CLAIMS_OF_FAILED_ATTEMPT,
    ),
    mutant_of(
        "kafka-228-release-first",
        "KAFKA-228: partitions were released while their fetchers still ran",
        "it releases first, and stops fetching afterwards",
        TRUTHFUL,
        TWO,
        steps=(
            Step.FENCE,
            Step.READ_PIPELINED,
            Step.ASSIGN,
            Step.RELEASE_LOST,
            Step.STOP_LOST,
            Step.COMMIT,
            Step.CLAIM_FREE,
            Step.READ_OFFSETS,
            Step.START,
        ),
    ),
    mutant_of(
        "kafka-265-deaf",
        "KAFKA-265, as it must not be mended: the mark is cleared when the work is done",
        "events that arrive during a rebalance are dropped",
        CONSENSUS,
        TWO,
        mutation=Mutation.DROPS_EVENTS_OF_REBALANCE,
    ),
    mutant_of(
        "kafka-1010-no-retry",
        "KAFKA-1010: the brokers were read outside of what is retried",
        "a broker that vanishes while the brokers are read ends all attempts",
        COVER,
        Configuration(bounded(broker_crash=1), brokers=2, topics=(("clicks", 2),), layout="0.8"),
        KAFKA_08,
        cluster_read_is_retried=False,
    ),
    mutant_of(
        "kafka-1062-unsorted",
        "KAFKA-1062, FLINK-7143: partitions were taken in the order of a map",
        "each member deals out partitions in an order of its own",
        COVER,
        Configuration(members=2, brokers=1, topics=(("clicks", 3),)),
        mutation=Mutation.ASSIGNS_UNSORTED,
    ),
    mutant_of(
        "kafka-1030-cache",
        "KAFKA-1030: partitions came from a cache that was never refreshed",
        "the partitions are read once",
        COVER,
        Configuration(bounded(broker_crash=1, broker_restart=1), brokers=2),
        mutation=Mutation.READS_PARTITIONS_ONCE,
    ),
    mutant_of(
        "kafka-1075-no-watch",
        "KAFKA-1075: there was no watch on the number of partitions of a topic",
        "no watch reports new partitions",
        COVER,
        Configuration(bounded(broker_crash=1, broker_restart=1), brokers=2),
        mutation=Mutation.NO_WATCH_ON_PARTITIONS,
    ),
    mutant_of(
        "kafka-992-old-id",
        "KAFKA-992, ZOOKEEPER-1740: the id of the session before was taken for the own one",
        "an id that holds the same data counts as registered, whichever session made it",
        COVER,
        Configuration(bounded(crash=1, restart=1)),
        DOCUMENTED,
        own_id_in_use=OwnIdInUse.MINE_IF_SAME_DATA,
    ),
    mutant_of(
        "kafka-969-no-brokers",
        "KAFKA-969: a consumer that came up before the first broker never consumed",
        "the absence of brokers is a failure, and no watch reports the first broker",
        COVER,
        Configuration(bounded(broker_crash=1, broker_restart=1)),
        mutation=Mutation.NO_BROKERS_IS_FAILURE,
    ),
    mutant_of(
        "kafka-1180-unescaped",
        "KAFKA-1180: a filter was written into JSON without escaping it",
        "a registration that cannot be decoded fails every attempt",
        COVER,
        Configuration(layout="0.8", white_list="click\\w"),
        KAFKA_08,
        mutation=Mutation.FILTERS_NOT_ESCAPED,
    ),
    mutant_of(
        "kafka-154-old-position",
        "KAFKA-154: positions outlived a rebalance",
        "a partition that comes back is read from the old position, not from the committed one",
        MONOTONE,
        Configuration(bounded("settled", messages=2, join=1, leave=1), members=2, ids=("b", "a")),
        mutation=Mutation.POSITIONS_OUTLIVE_RELEASE,
    ),
    # never mended
    mutant_of(
        "offset-before-claim",
        "Kafka 0.7.1 to 1.1: the offset is read before the claim",
        "it starts at an offset from before the last commit of the previous owner",
        MONOTONE,
        Configuration(bounded("settled", messages=2, join=1), members=2, ids=("b", "a")),
        steps=(
            Step.FENCE,
            Step.READ_PIPELINED,
            Step.ASSIGN,
            Step.STOP_LOST,
            Step.COMMIT,
            Step.RELEASE_LOST,
            Step.READ_OFFSETS,
            Step.CLAIM_FREE,
            Step.START,
        ),
    ),
    mutant_of(
        "claims-lost-on-error",
        "Kafka, all versions: after an error in mid-claim no registry knows the claims before it",
        "it releases the claims in its state, which lacks those made before an error",
        PROGRESS,
        Configuration(bounded(lost_reply=1)),
        DOCUMENTED,
        steps=(
            Step.READ_BROKERS,
            Step.READ_PARTITIONS,
            Step.READ_MEMBERS,
            Step.ASSIGN,
            Step.RELEASE_ALL,
            Step.CLAIM_UNTIL_RELEASED,
            Step.READ_OFFSETS,
            Step.START,
        ),
    ),
    mutant_of(
        "no-fence",
        "Kafka, all versions: offsets are written unconditionally",
        "a commit of a lost connection takes effect after a later one",
        MONOTONE,
        Configuration(bounded("settled", messages=2, late_request=1)),
        mutation=Mutation.COMMITS_UNFENCED,
    ),
    mutant_of(
        "gives-up",
        "Kafka, all versions; KAFKA-4228; wvanbergen/kafka#102: attempts run out",
        "it tries four times, gives up, and stays registered",
        COVER,
        TWO,
        mutation=Mutation.GIVES_UP,
    ),
    # elsewhere
    mutant_of(
        "adopts-by-name",
        "CURATOR-604, kazoo-go: a claim that holds the own name was taken for the own one",
        "a claim that holds its name is its own, whichever session made it",
        TRUTHFUL,
        Configuration(bounded("settled", crash=1, restart=1)),
        mutation=Mutation.OWN_NAME_IS_OWN_CLAIM,
    ),
    mutant_of(
        "claims-by-place",
        "pykafka#336, KAFKA-370: the path contained something that changes",
        "the path of a claim has the position of the broker in a list",
        OWN_NODES,
        Configuration(bounded("settled", broker_crash=1), members=2, brokers=2),
        mutation=Mutation.CLAIMS_BY_POSITION,
        layouts=("0.7",),
    ),
    mutant_of(
        "stale-memory",
        "pykafka#204: after an expiry the claims were taken from the state",
        "it keeps the claims of its previous session in its state",
        TRUTHFUL,
        Configuration(bounded("settled", expire=1)),
        mutation=Mutation.CLAIMS_OUTLIVE_SESSION,
    ),
    mutant_of(
        "resumes",
        "kazoo#151, go-zookeeper#83: after a break in the connection watches were gone",
        "after a reconnection it goes on and reads nothing again",
        CONSENSUS,
        Configuration(bounded("settled", disconnect=1, join=1), members=2, brokers=2),
        mutation=Mutation.RESUMES_AFTER_DISCONNECT,
    ),
    mutant_of(
        "lost-reply",
        "pulsar#7773, KAFKA-1387: an own claim without a response was taken for another's",
        "it waits for the deletion of its own claim, whose response was lost",
        COVER,
        Configuration(bounded(lost_reply=1)),
        mutation=Mutation.CLAIMS_FROM_STATE,
    ),
    mutant_of(
        "clears-away",
        "kafka-node#341: owner znodes were read and then deleted, even if they had a new owner",
        "a claim by a name that it did not see in the group is deleted",
        OWN_NODES,
        TWO,
        mutation=Mutation.DELETES_CLAIMS_OF_STRANGERS,
    ),
    mutant_of(
        "watches-late",
        "wvanbergen/kafka#76, Curator: a change between a read and its watch went unnoticed",
        "it sets the watch on the members after the read",
        CONSENSUS,
        TWO,
        mutation=Mutation.WATCHES_AFTER_READ,
    ),
    mutant_of(
        "shares-for-all",
        "poseidon_cluster#3: shares were computed over members of other topics",
        "every member has a share in every topic",
        COVER,
        Configuration(members=2, topics=(("clicks", 2), ("views", 1)), wants=("clicks", "views")),
        mutation=Mutation.ASSIGNS_TO_ALL_MEMBERS,
    ),
    mutant_of(
        "rounds-down",
        "the design pages to the letter: N = size(PT) / size(CG)",
        "the remainder of the division has no owner",
        COVER,
        Configuration(members=2),
        assignor="range_floor",
    ),
    # this project
    mutant_of(
        "memory-lost",
        "an early version of this protocol, where a search found it",
        "the state that a failed attempt has found out is dropped",
        PROGRESS,
        Configuration(bounded(broker_crash=1, disconnect=1, late_request=1)),
        mutation=Mutation.FAILED_ATTEMPT_LEAVES_NO_STATE,
    ),
    mutant_of(
        "half-a-batch",
        "an early version of this protocol, where a search found it",
        "the first failure of a batch counts for the whole batch",
        MONOTONE,
        Configuration(bounded("settled", messages=2, expire=1), brokers=2),
        mutation=Mutation.FIRST_ANSWER_DECIDES,
    ),
    mutant_of(
        "old-fence",
        "ZooKeeper: a request may take effect after its connection is lost",
        "after a lost connection it raises no fence against its earlier requests",
        COVER,
        Configuration(bounded(late_request=1, join=1), members=2, brokers=2),
        mutation=Mutation.FENCE_NOT_RAISED,
    ),
)

MUTANTS = {mutant.name: mutant for mutant in _ROWS}
"""Every mutant, by the name of its variant."""
