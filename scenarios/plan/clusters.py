"""Builds the clusters of a plan: brokers, topics, and a layout that all members support."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.controller.state_machines.variants import CONTROLLERS
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.plan.plan import (
    BrokerPlan,
    ClusterPlan,
    ControllerPlan,
    ReplicationPlan,
    TopicPlan,
    ZooKeeperPlan,
)
from watchkeeper.model.registry.paths import Layout
from watchkeeper.model.replication.settings import AutoCreation, FetchLayout, layout_problem
from watchkeeper.model.replication.variants import REPLICATIONS, ReplicationVariant
from watchkeeper.scenarios.plan.context import Context
from watchkeeper.scenarios.plan.messages import storage
from watchkeeper.scenarios.plan.offsets import offsets
from watchkeeper.scenarios.schema.replication_schema import ReplicationModel
from watchkeeper.scenarios.schema.schema import (
    MOST_PARTITIONS,
    ClusterModel,
    TopicModel,
    ZooKeeperModel,
)
from watchkeeper.scenarios.text.document import Path
from watchkeeper.scenarios.text.errors import expected, not_just_one

MOST_BROKERS = 1_000
PORT = 9092


def cluster(context: Context, name: str) -> ClusterPlan:
    """Build one cluster."""
    model = context.scenario.clusters[name]
    variant = context.variant_named(model.variant, ("clusters", name, "variant"))
    brokers = _brokers(context, name)
    layout = _layout(context, name, variant)
    topics = tuple(_topic(context, name, topic) for topic in model.topics) if brokers else ()
    if model.topics and not brokers:
        context.problem(("clusters", name, "topics"), "need a broker to be on")
    return ClusterPlan(
        name=name,
        zookeeper=_ensemble(model.zookeeper),
        layout=layout,
        variant=variant,
        brokers=brokers,
        topics=topics,
        session_timeout_ms=max(model.session_timeout // 1000, 1),
        storage=storage(context, name, layout),
        controller=_controller(context, name, variant, layout),
        replication=_replication(context, name, variant),
    )


def _ensemble(model: ZooKeeperModel) -> ZooKeeperPlan:
    return ZooKeeperPlan(model.servers, model.tick, model.lists_ephemerals)


def _controller(
    context: Context, name: str, variant: Variant, layout: Layout
) -> ControllerPlan | None:
    """The controller of a cluster; None where the administrator elects the leaders."""
    model = context.scenario.clusters[name]
    unclean = model.unclean_leader_election
    if model.leaders != "controller":
        if unclean is not None:
            message = "has no effect without `leaders: controller`"
            context.problem(("clusters", name, "unclean_leader_election"), message)
        return None
    path: Path = ("clusters", name, "leaders")
    if layout != "0.8":
        message = 'needs the 0.8 layout, since 0.7 has no leaders; set `layout: "0.8"`'
        context.problem(path, message)
    found = CONTROLLERS.get(variant.name)
    if found is None:
        allowed = " or ".join(CONTROLLERS)
        message = f"the variant {variant.name} has no controller; expected {allowed}"
        context.problem(path, message)
        return None
    return ControllerPlan(found, allows_unclean=unclean is not False)


def _rebalance_ms(model: ReplicationModel) -> int | None:
    every = model.leader_rebalance
    return every // 1000 if isinstance(every, int) else None


def _replication(context: Context, name: str, variant: Variant) -> ReplicationPlan | None:
    """How brokers replicate; None where leaders are what ZooKeeper says."""
    cluster = context.scenario.clusters[name]
    model = cluster.replication
    if model is None:
        return None
    found = REPLICATIONS.get(variant.name)
    if cluster.leaders != "controller" or found is None:
        message = "has no effect without `leaders: controller`"
        context.problem(("clusters", name, "replication"), message)
        return None
    return ReplicationPlan(
        found,
        min_in_sync=model.min_insync_replicas,
        lag_time_ms=model.lag_time // 1000,
        lag_messages=model.lag_messages,
        fetch_wait_ms=model.fetch_wait // 1000,
        fetch_layout=_fetch_layout(context, name, model, found),
        rebalance_ms=_rebalance_ms(model),
        shutdown_backoff_ms=_shutdown_backoff_ms(context, name, model),
        deletes_topics=model.delete_topics,
        isr_in_metadata=model.isr_in_metadata,
        auto_creation=_auto_creation(model),
        offsets=offsets(context, name, model.offsets_topic),
    )


def _fetch_layout(
    context: Context, name: str, model: ReplicationModel, variant: ReplicationVariant
) -> FetchLayout:
    layout = FetchLayout(model.fetches)
    problem = layout_problem(layout, variant)
    if problem:
        context.problem(("clusters", name, "replication", "fetches"), problem)
        return FetchLayout.WITH_EPOCHS
    return layout


def _shutdown_backoff_ms(context: Context, name: str, model: ReplicationModel) -> int | None:
    if model.controlled_shutdown:
        return model.controlled_shutdown_backoff // 1000
    if "controlled_shutdown_backoff" in model.model_fields_set:
        path: Path = ("clusters", name, "replication", "controlled_shutdown_backoff")
        context.problem(path, "has no effect with `controlled_shutdown: false`")
    return None


def _auto_creation(model: ReplicationModel) -> AutoCreation | None:
    found = model.auto_create_topics
    return None if found is None else AutoCreation(found.partitions, found.replicas)


# --- layout ----------------------------------------------------------------------------


def _layout(context: Context, name: str, brokers: Variant) -> Layout:
    """The layout that the scenario names, or the first that every variant in
    the cluster allows."""
    variants = [brokers, *_variants_in(context, name)]
    given = context.scenario.clusters[name].layout
    if given is not None:
        for variant in variants:
            if given not in variant.layouts:
                allowed = " and ".join(variant.layouts)
                message = (
                    f"{variant.name} does not run on the {given} layout (it allows {allowed})"
                )
                again = "choose another variant or another layout"
                context.problem(("clusters", name, "layout"), f"{message}; {again}")
        return given
    for layout in context.variant.layouts:
        if all(layout in variant.layouts for variant in variants):
            return layout
    names = sorted({variant.name for variant in variants})
    context.problem(("clusters", name), f"no layout is allowed by all of {', '.join(names)}")
    return brokers.layout


def _variants_in(context: Context, cluster: str) -> Iterator[Variant]:
    """Every variant that a consumer of a cluster runs."""
    for name, group in context.scenario.groups.items():
        if context.cluster_of(name) != cluster:
            continue
        path: Path = ("groups", name)
        yield context.variant_named(group.variant, (*path, "variant"))
        for at, consumer in enumerate(
            group.consumers if isinstance(group.consumers, list) else ()
        ):
            if consumer.variant is not None:
                yield context.variant_named(consumer.variant, (*path, "consumers", at, "variant"))


# --- brokers ---------------------------------------------------------------------------


def _brokers(context: Context, cluster: str) -> tuple[BrokerPlan, ...]:
    """The brokers of a cluster: numbered from 0, or as listed."""
    listed = context.scenario.clusters[cluster].brokers
    prefix = context.prefix(cluster)
    if isinstance(listed, int):
        if not 0 <= listed <= MOST_BROKERS:
            message = f"{listed} is not a number of brokers, 0 to {MOST_BROKERS}"
            context.problem(("clusters", cluster, "brokers"), message)
            return ()
        return tuple(
            BrokerPlan(f"{prefix}broker/{number}", number, f"{cluster}-b{number}.example", PORT)
            for number in range(listed)
        )
    return tuple(
        BrokerPlan(
            f"{prefix}broker/{model.name or model.id}",
            model.id,
            model.host or f"{cluster}-{model.name or f'b{model.id}'}.example",
            model.port,
            None if model.starts == "never" else model.starts,
        )
        for model in listed
    )


# --- topics ----------------------------------------------------------------------------


def _topic(context: Context, cluster: str, name: str) -> TopicPlan:
    """Build one topic; its partitions go to the brokers in turn."""
    model = context.scenario.clusters[cluster]
    topic = model.topics[name]
    path: Path = ("clusters", cluster, "topics", name)
    brokers = _ids(model)
    wrong = not_just_one(
        partitions=topic.partitions, partitions_per_broker=topic.partitions_per_broker
    )
    if wrong:
        context.problem(path, wrong)
        return TopicPlan(name, (), ())
    if topic.replicas > len(brokers):
        message = f"{topic.replicas} is more than there are brokers, {len(brokers)}"
        context.problem((*path, "replicas"), message)
    counts = {**_counts(topic, brokers), **_own_counts(context, cluster, name)}
    if sum(counts.values()) > MOST_PARTITIONS:
        message = f"has {sum(counts.values())} partitions; expected at most {MOST_PARTITIONS}"
        context.problem(path, message)
        return TopicPlan(name, (), ())
    homes = tuple(
        (index, tuple(brokers[(index + copy) % len(brokers)] for copy in range(topic.replicas)))
        for index in range(sum(counts.values()))
    )
    return TopicPlan(name, tuple(counts.items()), homes)


def _ids(model: ClusterModel) -> list[int]:
    if isinstance(model.brokers, int):
        return list(range(model.brokers))
    return sorted({broker.id for broker in model.brokers})


def _counts(topic: TopicModel, brokers: list[int]) -> dict[int, int]:
    """How many partitions a topic has on each broker."""
    if topic.partitions_per_broker is not None:
        return dict.fromkeys(brokers, topic.partitions_per_broker)
    assert topic.partitions is not None, "one of the two is given"
    each, left = divmod(topic.partitions, len(brokers))
    return {broker: each + (1 if at < left else 0) for at, broker in enumerate(brokers)}


def _own_counts(context: Context, cluster: str, topic: str) -> dict[int, int]:
    """The numbers of partitions that single brokers state for a topic."""
    model = context.scenario.clusters[cluster]
    found = {}
    for at, broker in enumerate(model.brokers if isinstance(model.brokers, list) else ()):
        path: Path = ("clusters", cluster, "brokers", at, "partitions")
        for unknown in broker.partitions.keys() - model.topics.keys():
            context.problem((*path, unknown), expected(unknown, "a topic here", model.topics))
        if topic in broker.partitions:
            if not 1 <= broker.partitions[topic] <= MOST_PARTITIONS:
                message = f"is not a number of partitions, 1 to {MOST_PARTITIONS}"
                context.problem((*path, topic), message)
            found[broker.id] = broker.partitions[topic]
    return found
