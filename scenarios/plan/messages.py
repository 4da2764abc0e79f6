"""Makes what a plan says of messages: storage, producers, promises and handling."""

from __future__ import annotations

from model.clients.errors import InvalidConfig
from model.clients.producer_settings import ProducerSettings, producer_settings
from model.log.settings import log_settings
from model.plan import Handling, ProducerPlan, StoragePlan, balancer
from model.promise import Promise
from model.registry import Layout
from scenarios.context import Context
from scenarios.message_schema import ProducerModel, PromiseModel
from scenarios.problems import expected
from scenarios.reading import Path

ONLY = "producer"
"""The name of the producer of a scenario that names none."""


def storage(context: Context, cluster: str, layout: Layout) -> StoragePlan | None:
    """The machines of a cluster's brokers; None where logs hold no messages."""
    model = context.scenario.clusters[cluster].storage
    if model is None:
        return None
    path: Path = ("clusters", cluster, "storage")
    if layout != "0.7":
        said = (
            f"needs the 0.7 layout, since its brokers speak the protocol of 0.7; "
            f"{context.variant.name} runs on {layout}"
        )
        context.problem(path, said)
    try:
        settings = log_settings(model.config)
    except ValueError as error:
        context.problem((*path, "config"), str(error))
        settings = log_settings()
    return StoragePlan(model.machine, model.memory or 0, model.sendfile, settings)


# --- producers -------------------------------------------------------------------------


def producers(context: Context) -> tuple[ProducerPlan, ...]:
    """Every producer: those that are named, or one for each cluster that stores messages."""
    named = context.scenario.producers
    storing = [name for name, one in context.scenario.clusters.items() if one.storage is not None]
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
        said = expected(model.cluster, "a cluster that stores messages", storing)
        context.problem((*path, "cluster"), said)
    elif storing:
        said = f"needs `cluster`, since several store messages: {', '.join(storing)}"
        context.problem(path, said)
    else:
        context.problem(path, "has nothing to send to: no cluster has `storage`")
    return None


def _producer(
    context: Context, name: str, at: int, model: ProducerModel, cluster: str
) -> ProducerPlan:
    settings = _settings(context, name, model, cluster)
    return ProducerPlan(f"{name}/{at}", cluster, settings, model.keys, model.balanced)


def _settings(
    context: Context, name: str, model: ProducerModel, cluster: str
) -> ProducerSettings:
    """The settings; brokers are found in the cluster's ZooKeeper unless they are listed."""
    given = dict(model.config)
    if model.balanced:
        given.setdefault("broker.list", f"0:{balancer(cluster)}")
    elif "broker.list" not in given:
        given.setdefault("zk.connect", cluster)
    try:
        return producer_settings(given)
    except InvalidConfig as error:
        context.problem(("producers", name, "config"), str(error))
        return producer_settings({"zk.connect": cluster})


# --- groups ----------------------------------------------------------------------------


def promise(context: Context, group: str) -> Promise | None:
    """What is promised of the messages to a group, if anything is."""
    model = context.scenario.groups[group]
    if model.promise is None:
        return None
    _need_storage(context, group, "promise")
    topics = tuple(sorted(context.scenario.clusters[context.cluster_of(group)].topics))
    if isinstance(model.promise, PromiseModel):
        said = model.promise
        return Promise(said.semantics, topics, said.most_lost, said.most_repeated)
    return Promise(model.promise, topics)


def handling(context: Context, group: str) -> Handling:
    """What the application of each member does with its messages."""
    model = context.scenario.groups[group].handling
    if model is None:
        return Handling()
    _need_storage(context, group, "handling")
    if model.store is not None and model.commits != "with the result":
        said = "is about results that are stored with places; expected `commits: with the result`"
        context.problem(("groups", group, "handling", "store"), said)
    return Handling(model.each, model.commits, model.store or "database")


def _need_storage(context: Context, group: str, field: str) -> None:
    cluster = context.cluster_of(group)
    if context.scenario.clusters[cluster].storage is None:
        said = f"is about messages, and cluster {cluster} has no `storage` for any"
        context.problem(("groups", group, field), said)
