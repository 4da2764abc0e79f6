"""Builds the message part of a plan: storage, producers, delivery guarantees, handling."""

from __future__ import annotations

from collections.abc import Iterable

from watchkeeper.model.clients.errors import InvalidConfig
from watchkeeper.model.clients.producer.settings import ProducerSettings, producer_settings
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
COUNTS = "topic.partition.count.map"
NOT_OF_SCENARIOS = {
    "zk.connect": "is the ZooKeeper of the producer's `cluster`; leave it out",
    "serializer.class": "has no effect: the messages of a run are bytes; leave it out",
}
"""Settings of producers that the scenario itself decides."""


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
    storing = [
        name for name, cluster in context.scenario.clusters.items() if cluster.storage is not None
    ]
    if not named:
        only = ProducerModel.model_validate({})
        several = len(storing) > 1
        return tuple(
            _producer(context, f"{ONLY}-{cluster}" if several else ONLY, 0, only, cluster)
            for cluster in storing
        )
    return tuple(
        _producer(context, name, at, model, cluster)
        for name, model in named.items()
        for cluster in (_cluster_of(context, name, model, storing),)
        if cluster is not None
        for at in range(model.number)
    )


def _cluster_of(
    context: Context, name: str, model: ProducerModel, storing: list[str]
) -> str | None:
    if model.cluster is None and len(storing) == 1:
        return storing[0]
    if model.cluster in storing:
        return model.cluster
    path: Path = ("producers", name)
    if model.cluster is not None:
        message = expected(model.cluster, "a cluster with `storage`", storing)
        context.problem((*path, "cluster"), message)
    elif storing:
        message = f"needs `cluster`, since several store messages: {', '.join(storing)}"
        context.problem(path, message)
    else:
        context.problem(path, "has nothing to send to: no cluster has `storage`")
    return None


def _producer(
    context: Context, name: str, at: int, model: ProducerModel, cluster: str
) -> ProducerPlan:
    settings = _settings(context, name, model, cluster)
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
