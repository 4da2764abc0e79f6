"""Builds the message part of a plan: storage, producers, delivery guarantees, handling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from watchkeeper.model.clients.errors import InvalidConfig
from watchkeeper.model.clients.producer.settings import ProducerSettings, producer_settings
from watchkeeper.model.clients_08.settings import ProducerSettings08, producer_settings_08
from watchkeeper.model.log.settings import log_settings
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee
from watchkeeper.model.plan.plan import Handling, ProducerPlan, StoragePlan, balancer
from watchkeeper.model.registry.paths import Layout
from watchkeeper.scenarios.plan.context import Context
from watchkeeper.scenarios.schema.message_schema import DeliveryGuaranteeModel, ProducerModel
from watchkeeper.scenarios.schema.schema import ClusterModel
from watchkeeper.scenarios.text.document import Path
from watchkeeper.scenarios.text.errors import expected

ONLY = "producer"
"""The name of the producer in a scenario that names none."""
LONGEST_PRODUCER = 70
"""Characters of a name; a message has room for it and for the number of the process."""
COUNTS = "topic.partition.count.map"
NOT_OF_SCENARIOS = {
    "zk.connect": "is the ZooKeeper of the producer's `cluster`; leave it out",
    "serializer.class": "has no effect: the messages of a run are bytes; leave it out",
}
"""Settings of producers that the scenario itself decides."""
NOT_OF_REPLICATED = {
    "metadata.broker.list": "is the brokers of the producer's `cluster`; leave it out",
    "client.id": "has no effect: the brokers of a run keep no log of requests; leave it out",
    "serializer.class": NOT_OF_SCENARIOS["serializer.class"],
    "compression.codec": "has no effect: brokers that replicate account for single messages; "
    "leave it out",
    "compressed.topics": "has no effect without `compression.codec`; leave it out",
}
"""The same of producers of 0.8."""
NUMBERS_OF_A_PRODUCER = 10**12
"""The first number of the messages of a producer of 0.8 is a multiple of this."""


def storage(context: Context, cluster: str, layout: Layout) -> StoragePlan | None:
    """The machines of a cluster's brokers; None if its logs hold no messages."""
    model = context.scenario.clusters[cluster].storage
    if model is None:
        return None
    path: Path = ("clusters", cluster, "storage")
    if layout != "0.7":
        message = (
            f"needs the 0.7 layout, since its brokers speak the protocol of 0.7; "
            f"{context.variant.name} runs on {layout}"
        )
        context.problem(path, message)
    try:
        settings = log_settings(model.config)
    except ValueError as error:
        context.problem((*path, "config"), str(error))
        settings = log_settings()
    if COUNTS in model.config:
        message = "is set by `partitions_per_broker` of each topic; leave it out"
        context.problem((*path, "config", COUNTS), message)
    else:
        _check_topics(context, cluster, (*path, "config"), [name for name, _ in settings.topics])
    return StoragePlan(model.machine, model.memory or 0, model.sendfile, settings)


def _check_topics(context: Context, cluster: str, path: Path, topics: Iterable[str]) -> None:
    """Refuse settings of topics that the cluster does not have: they would have no effect."""
    known = context.topics_of(cluster)
    for topic in topics:
        if topic not in known:
            context.problem(path, expected(topic, "a topic of the cluster", sorted(known)))


# --- producers -------------------------------------------------------------------------


def producers(context: Context) -> tuple[ProducerPlan, ...]:
    """The producers that the scenario names, or one for each cluster that stores messages."""
    named = context.scenario.producers
    clusters = context.scenario.clusters
    storing = [name for name, cluster in clusters.items() if has_messages(cluster)]
    if not named:
        storing = [name for name in storing if clusters[name].storage is not None]
        only = ProducerModel.model_validate({})
        several = len(storing) > 1
        return tuple(
            _producer(context, f"{ONLY}-{cluster}" if several else ONLY, 0, only, cluster)
            for cluster in storing
        )
    return tuple(
        _numbered(place, plan)
        for place, plan in enumerate(
            _producer(context, name, at, model, cluster)
            for name, model in named.items()
            for cluster in (_cluster_of(context, name, model, storing),)
            if cluster is not None
            for at in range(model.number)
        )
    )


def _numbered(place: int, plan: ProducerPlan) -> ProducerPlan:
    """Give a producer numbers that no other one uses, where brokers know messages by them."""
    return replace(plan, first_number=place * NUMBERS_OF_A_PRODUCER * plan.replicates)


def _cluster_of(
    context: Context, name: str, model: ProducerModel, storing: list[str]
) -> str | None:
    if model.cluster is None and len(storing) == 1:
        return storing[0]
    if model.cluster in storing:
        return model.cluster
    path: Path = ("producers", name)
    if model.cluster is not None:
        message = expected(model.cluster, "a cluster with `storage` or `replication`", storing)
        context.problem((*path, "cluster"), message)
    elif storing:
        message = f"needs `cluster`, since several store messages: {', '.join(storing)}"
        context.problem(path, message)
    else:
        message = "has nothing to send to: no cluster has `storage` or `replication`"
        context.problem(path, message)
    return None


def _producer(
    context: Context, name: str, at: int, model: ProducerModel, cluster: str
) -> ProducerPlan:
    replicates = context.scenario.clusters[cluster].storage is None
    settings = (_settings_08 if replicates else _settings)(context, name, model, cluster)
    path: Path = ("clusters", cluster, "variant")
    variant = context.variant_named(context.scenario.clusters[cluster].variant, path)
    return ProducerPlan(f"{name}/{at}", cluster, settings, variant, model.keys, model.balanced)


def _settings(
    context: Context, name: str, model: ProducerModel, cluster: str
) -> ProducerSettings:
    """The settings; brokers are found in the cluster's ZooKeeper unless they are listed."""
    path: Path = ("producers", name, "config")
    for key, message in NOT_OF_SCENARIOS.items():
        if key in model.config:
            context.problem((*path, key), message)
    given = {key: value for key, value in model.config.items() if key not in NOT_OF_SCENARIOS}
    if model.balanced:
        given.setdefault("broker.list", f"0:{balancer(cluster)}")
    elif "broker.list" not in given:
        given.setdefault("zk.connect", cluster)
    try:
        settings = producer_settings(given)
    except InvalidConfig as error:
        context.problem(path, str(error))
        return producer_settings({"zk.connect": cluster})

    _check_topics(context, cluster, path, settings.compressed_topics)
    return settings


def _settings_08(
    context: Context, name: str, model: ProducerModel, cluster: str
) -> ProducerSettings08:
    """The settings of a producer of 0.8, which knows every broker of its cluster."""
    path: Path = ("producers", name)
    if model.balanced:
        message = "has no effect: a producer of 0.8 sends to the leaders of partitions"
        context.problem((*path, "balanced"), message)
    if len(name) > LONGEST_PRODUCER:
        message = f"is longer than {LONGEST_PRODUCER} characters, which a message has room for"
        context.problem(path, message)
    for key in NOT_OF_REPLICATED.keys() & model.config.keys():
        context.problem((*path, "config", key), NOT_OF_REPLICATED[key])
    brokers = ",".join(entry.partition(":")[2] for entry in context.addresses[cluster].split(","))
    fixed = {"metadata.broker.list": brokers}
    given = {key: value for key, value in model.config.items() if key not in NOT_OF_REPLICATED}
    try:
        return producer_settings_08({**given, **fixed})
    except InvalidConfig as error:
        context.problem((*path, "config"), str(error))
        return producer_settings_08({"metadata.broker.list": "none.example:9092"})


# --- groups ----------------------------------------------------------------------------


def guarantee(context: Context, group: str) -> DeliveryGuarantee | None:
    """The delivery guarantee of a group; None if it has none."""
    model = context.scenario.groups[group]
    if model.guarantee is None:
        return None
    _need_storage(context, group, "guarantee")
    topics = tuple(sorted(context.scenario.clusters[context.cluster_of(group)].topics))
    if isinstance(model.guarantee, DeliveryGuaranteeModel):
        limits = model.guarantee
        return DeliveryGuarantee(limits.semantics, topics, limits.most_lost, limits.most_repeated)
    return DeliveryGuarantee(model.guarantee, topics)


def handling(context: Context, group: str) -> Handling:
    """How the application of each member handles messages."""
    model = context.scenario.groups[group].handling
    if model is None:
        return Handling()
    _need_storage(context, group, "handling")
    if model.store is not None and model.commits != "with the result":
        message = (
            "is about results that are stored with places; expected `commits: with the result`"
        )
        context.problem(("groups", group, "handling", "store"), message)
    return Handling(model.each, model.commits, model.store or "database")


def _need_storage(context: Context, group: str, field: str) -> None:
    cluster = context.cluster_of(group)
    if not has_messages(context.scenario.clusters[cluster]):
        message = f"is about messages: cluster {cluster} lacks `storage` and `replication`"
        context.problem(("groups", group, field), message)


def has_messages(cluster: ClusterModel) -> bool:
    """Whether the brokers of a cluster store messages."""
    return cluster.storage is not None or cluster.replication is not None
