"""The zoo: mistakes that somebody made, planted one at a time into a protocol without them.

A plant is a variant that differs in one answer from another one, its base, and a
configuration in which a search of every interleaving finds what comes of that, while the
base does not violate that property there. So the table shows what such a search is able to
see. `planting` says what a plant is; the code of the mistakes is in `flaws`.
"""

from __future__ import annotations

from model.calm import CONSENSUS, COVER
from model.ownership import MONOTONE, OWN_NODES, TRUTHFUL
from model.planting import Configuration, bounded, planted
from model.progress import PROGRESS
from model.variants import DOCUMENTED, KAFKA_08, VARIANTS, Variant

TWO = Configuration(members=2, brokers=2)
"""Two members that share two partitions."""
ALONE = Configuration()
"""One member with one partition."""

_ROWS = (
    # Kafka
    planted(
        "kafka-262-last-claim",
        "KAFKA-262: the results of the claims were folded so that only the last one counted",
        "whether its claims succeeded is what the last of them says",
        TRUTHFUL,
        Configuration(members=2, topics=(("clicks", 3),)),
        flaw="the last claim decides",
    ),
    planted(
        "kafka-286-claims-kept",
        "KAFKA-286: a failed attempt left the claims that it had made, and forgot them",
        "what an attempt has claimed before it fails stays claimed, and nobody knows whose it is",
        PROGRESS,
        TWO,
        flaw="what a failed attempt claimed is forgotten",
    ),
    planted(
        "kafka-228-release-first",
        "KAFKA-228: partitions were released while their fetchers still ran",
        "it releases first, and stops fetching afterwards",
        TRUTHFUL,
        TWO,
        steps=(
            "fence",
            "2-3 look",
            "4-7 assign",
            "8 release lost",
            "stop lost",
            "commit",
            "9 claim what is free",
            "read offsets",
            "start",
        ),
    ),
    planted(
        "kafka-265-deaf",
        "KAFKA-265, as it must not be mended: the mark is cleared when the work is done",
        "what its watches tell while it rebalances is dropped",
        CONSENSUS,
        TWO,
        flaw="notes that come during a rebalance are dropped",
    ),
    planted(
        "kafka-1010-no-retry",
        "KAFKA-1010: the brokers were read outside of what is retried",
        "a broker that vanishes while the brokers are read ends all attempts",
        COVER,
        Configuration(bounded(broker_crash=1), brokers=2, topics=(("clicks", 2),), layout="0.8"),
        KAFKA_08,
        cluster_read_is_retried=False,
    ),
    planted(
        "kafka-1062-unsorted",
        "KAFKA-1062, FLINK-7143: partitions were taken in the order of a map",
        "each member deals out partitions in an order of its own",
        COVER,
        Configuration(members=2, brokers=1, topics=(("clicks", 3),)),
        flaw="partitions are taken as listed",
    ),
    planted(
        "kafka-1030-cache",
        "KAFKA-1030: partitions were learnt from a cache that nobody renewed",
        "which partitions there are is read once",
        COVER,
        Configuration(bounded(broker_crash=1, broker_restart=1), brokers=2),
        flaw="partitions are read once",
    ),
    planted(
        "kafka-1075-no-watch",
        "KAFKA-1075: nobody watched what says how many partitions a topic has",
        "new partitions wake nobody",
        COVER,
        Configuration(bounded(broker_crash=1, broker_restart=1), brokers=2),
        flaw="nothing tells of new partitions",
    ),
    planted(
        "kafka-992-old-id",
        "KAFKA-992, ZOOKEEPER-1740: the id of the session before was taken for one's own",
        "an id that holds the same data counts as registered, whichever session made it",
        COVER,
        Configuration(bounded(crash=1, restart=1)),
        DOCUMENTED,
        own_id_in_use="mine if the data is the same",
    ),
    planted(
        "kafka-969-no-brokers",
        "KAFKA-969: a consumer that came up before the first broker never consumed",
        "the absence of brokers is a failure like any other, and nothing tells of their coming",
        COVER,
        Configuration(bounded(broker_crash=1, broker_restart=1)),
        flaw="no brokers is a failure",
    ),
    planted(
        "kafka-1180-unescaped",
        "KAFKA-1180: a filter was written into JSON without escaping it",
        "a registration that nobody can read fails every attempt",
        COVER,
        Configuration(layout="0.8", white_list="click\\w"),
        KAFKA_08,
        flaw="filters are not escaped",
    ),
    planted(
        "kafka-154-old-position",
        "KAFKA-154: what was known of a partition outlived a rebalance",
        "whoever gets a partition back goes on where it stood itself, not where the group stands",
        MONOTONE,
        Configuration(bounded("settled", messages=2, join=1, leave=1), members=2, ids=("b", "a")),
        flaw="positions outlive a hand-over",
    ),
    # never mended
    planted(
        "offset-before-claim",
        "Kafka 0.7.1 to 1.1: the offset is read before the claim",
        "it begins where its last owner had been when it looked, not where that let go",
        MONOTONE,
        Configuration(bounded("settled", messages=2, join=1), members=2, ids=("b", "a")),
        steps=(
            "fence",
            "2-3 look",
            "4-7 assign",
            "stop lost",
            "commit",
            "8 release lost",
            "read offsets",
            "9 claim what is free",
            "start",
        ),
    ),
    planted(
        "claims-lost-on-error",
        "Kafka, all versions: after an error in mid-claim no registry knows the claims before it",
        "it releases what it remembers, and does not remember what it claimed before an error",
        PROGRESS,
        Configuration(bounded(lost_reply=1)),
        DOCUMENTED,
        steps=(
            "read brokers",
            "2 read partitions",
            "3 read members",
            "4-7 assign",
            "8 release all",
            "9 claim until released",
            "read offsets",
            "start",
        ),
    ),
    planted(
        "no-fence",
        "Kafka, all versions: offsets are written over whatever is there",
        "a commit that was given up lands after a later one",
        MONOTONE,
        Configuration(bounded("settled", messages=2, ghost=1)),
        flaw="commits are not fenced",
    ),
    planted(
        "gives-up",
        "Kafka, all versions; KAFKA-4228; wvanbergen/kafka#102: attempts run out",
        "it tries four times, gives up, and stays registered",
        COVER,
        TWO,
        flaw="gives up what is claimed",
    ),
    # elsewhere
    planted(
        "adopts-by-name",
        "CURATOR-604, kazoo-go: a claim that holds my name was taken for mine",
        "what bears its name is its own, whichever session made it",
        TRUTHFUL,
        Configuration(bounded("settled", crash=1, restart=1)),
        flaw="what bears my name is mine",
    ),
    planted(
        "claims-by-place",
        "pykafka#336, KAFKA-370: what may change was a part of the path",
        "a partition is claimed by the place of its broker among the brokers",
        OWN_NODES,
        Configuration(bounded("settled", broker_crash=1), members=2, brokers=2),
        flaw="claims go by the place in a list",
    ),
    planted(
        "stale-memory",
        "pykafka#204: after an expiry the claims were taken from memory",
        "what it had claimed it believes to have, though the session is another",
        TRUTHFUL,
        Configuration(bounded("settled", expire=1)),
        flaw="claims outlive their session",
    ),
    planted(
        "resumes",
        "kazoo#151, go-zookeeper#83: after a break in the connection watches were gone",
        "connected again, it goes on as if nothing could have happened meanwhile",
        CONSENSUS,
        Configuration(bounded("settled", disconnect=1, join=1), members=2, brokers=2),
        flaw="goes on after a break as before",
    ),
    planted(
        "lost-reply",
        "pulsar#7773, KAFKA-1387: a claim that took effect and failed was another's",
        "it waits for its own claim to go, since its answer was lost",
        COVER,
        Configuration(bounded(lost_reply=1)),
        flaw="claims are known by memory",
    ),
    planted(
        "clears-away",
        "kafka-node#341: owner znodes were looked at and then deleted, whoever had them by then",
        "a claim by a name that it did not see in the group is deleted",
        OWN_NODES,
        TWO,
        flaw="claims of strangers are cleared away",
    ),
    planted(
        "watches-late",
        "wvanbergen/kafka#76, Curator: nothing watched between a read and its watch",
        "it watches the members when it has read them",
        CONSENSUS,
        TWO,
        flaw="watches after it has read",
    ),
    planted(
        "shares-for-all",
        "poseidon_cluster#3: shares were computed over members of other topics",
        "every member has a share in every topic",
        COVER,
        Configuration(members=2, topics=(("clicks", 2), ("views", 1)), wants=("clicks", "views")),
        flaw="everybody has a share in every topic",
    ),
    planted(
        "rounds-down",
        "the design pages to the letter: N = size(PT) / size(CG)",
        "what does not divide is left to nobody",
        COVER,
        Configuration(members=2),
        assignor="range_floor",
    ),
    # this project
    planted(
        "memory-lost",
        "an early version of this protocol, where a search found it",
        "what a failed attempt has found out is forgotten with it",
        PROGRESS,
        Configuration(bounded(broker_crash=1, disconnect=1, ghost=1)),
        flaw="a failed attempt leaves no memory",
    ),
    planted(
        "half-a-batch",
        "an early version of this protocol, where a search found it",
        "the first failure of a batch counts for all that was asked",
        MONOTONE,
        Configuration(bounded("settled", messages=2, expire=1), brokers=2),
        flaw="a batch is judged by its first answer",
    ),
    planted(
        "old-fence",
        "ZooKeeper: a request may land after its connection has died",
        "after a lost connection it raises no fence against what it sent before",
        COVER,
        Configuration(bounded(ghost=1, join=1), members=2, brokers=2),
        flaw="the fence is not raised",
    ),
)

PLANTS = {plant.name: plant for plant in _ROWS}
"""Every plant, by the name of its variant."""


def variant_named(name: str) -> Variant | None:
    """A variant, sound or planted; None where there is none of this name."""
    if name in VARIANTS:
        return VARIANTS[name]
    return PLANTS[name].variant if name in PLANTS else None
