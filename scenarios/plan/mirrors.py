"""Builds the mirrors of a plan: a group on each source cluster, and the target of each."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.clients.errors import InvalidConfig
from watchkeeper.model.clients.producer.settings import ProducerSettings, producer_settings
from watchkeeper.model.plan.plan import Forwarding
from watchkeeper.scenarios.plan.context import Context
from watchkeeper.scenarios.schema.message_schema import MirrorModel
from watchkeeper.scenarios.schema.schema import FilterModel, GroupModel, ScenarioModel
from watchkeeper.scenarios.text.errors import expected

TOLD = ("zk.connect", "broker.list")
SERIALIZER = "serializer.class"
NO_BROKER = "0:nowhere.example:9092"
"""Where the cluster that is sent to is a problem of its own."""
PLAIN = GroupModel.model_validate({"consumers": 0})
"""A group with every field at its default."""


def group_name(mirror: str, source: str) -> str:
    """The name of the group with which a mirror reads one of its sources."""
    return f"{mirror}-{source}"


def groups_of(scenario: ScenarioModel) -> Iterator[tuple[str, str, str]]:
    """Each group that mirrors have, with its mirror and the cluster that it reads."""
    for name, model in scenario.mirrors.items():
        for source in dict.fromkeys(model.from_):
            if source in scenario.clusters:
                yield group_name(name, source), name, source


def expand(context: Context) -> None:
    """Add the groups of mirrors to the groups of the scenario; refuse what cannot be mirrored."""
    scenario = context.scenario
    for name in scenario.mirrors:
        _check(context, name)
    made: dict[str, GroupModel] = {}
    for group, mirror, source in groups_of(scenario):
        if group in scenario.groups or group in scenario.producers:
            message = f"reads {source} as {group}, which is a name already; choose another"
            context.problem(("mirrors", mirror), message)
        else:
            made[group] = _group(scenario.mirrors[mirror], source)
            context.mirrored[group] = mirror
    groups = {**scenario.groups, **made}
    context.scenario = scenario.model_copy(update={"groups": groups})


def _group(model: MirrorModel, source: str) -> GroupModel:
    return PLAIN.model_copy(
        update={
            "cluster": source,
            "consumers": model.consumers,
            "filter": FilterModel.model_validate({"white_list": model.topics}),
            "variant": model.variant,
            "config": model.config,
            "starts": model.starts,
        }
    )


# --- what cannot be mirrored ------------------------------------------------------------


def _check(context: Context, name: str) -> None:
    model, clusters = context.scenario.mirrors[name], context.scenario.clusters
    storing = [cluster for cluster in clusters if clusters[cluster].storage is not None]
    what = "a cluster with `storage`"
    for at, source in enumerate(model.from_):
        if source not in storing:
            message = expected(source, what, storing)
            context.problem(("mirrors", name, "from", at), message)
    if model.to not in storing:
        context.problem(("mirrors", name, "to"), expected(model.to, what, storing))
    elif model.to in _fed_by(context.scenario, model.to):
        message = (
            f"{model.to} gets back what it sends, again and again; let mirrors form no circle"
        )
        context.problem(("mirrors", name, "to"), message)


def _fed_by(scenario: ScenarioModel, cluster: str) -> list[str]:
    """The clusters that receive messages from a cluster, over any number of mirrors."""
    found: list[str] = []
    asked = [cluster]
    for name in asked:
        targets = [each.to for each in scenario.mirrors.values() if name in each.from_]
        found += targets
        asked += [each for each in dict.fromkeys(targets) if each not in asked]
    return found


# --- where it sends ---------------------------------------------------------------------


def forwarding(context: Context, group: str) -> Forwarding | None:
    """The target of a mirror's group; None for any other group."""
    name = context.mirrored.get(group)
    if name is None:
        return None
    model = context.scenario.mirrors[name]
    _refuse_circle(context, name, group)
    settings = _settings(context, name, model)
    return Forwarding(name, model.to, model.topics, settings, model.commits)


def _settings(context: Context, name: str, model: MirrorModel) -> ProducerSettings:
    """The settings of a mirror's producers, which send to the brokers of the target."""
    listed = context.addresses.get(model.to) or NO_BROKER
    for key in TOLD:
        if key in model.producer:
            message = f"is not a mirror's to set: its producers send to the brokers of {model.to}"
            context.problem(("mirrors", name, "producer", key), message)
    if SERIALIZER in model.producer:
        message = "has no effect: a mirror sends the bytes that it has read; leave it out"
        context.problem(("mirrors", name, "producer", SERIALIZER), message)
    told = {*TOLD, SERIALIZER}
    given = {key: value for key, value in model.producer.items() if key not in told}
    try:
        return producer_settings({**given, "broker.list": listed})
    except InvalidConfig as error:
        context.problem(("mirrors", name, "producer"), str(error))
        return producer_settings({"broker.list": listed})


def _refuse_circle(context: Context, name: str, group: str) -> None:
    """Refuse a source broker at an address of the target: the mirror would feed itself."""
    source, target = context.scenario.groups[group].cluster, context.scenario.mirrors[name].to
    common = _addresses(context, str(source)) & _addresses(context, target)
    if source != target and common:
        message = f"{source} and {target} have brokers at one address, {min(common)}"
        context.problem(("mirrors", name), f"{message}; give them different hosts or ports")


def _addresses(context: Context, cluster: str) -> set[str]:
    listed = context.addresses.get(cluster, "").split(",")
    return {line.partition(":")[2] for line in listed if line}
