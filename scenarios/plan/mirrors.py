"""Makes what a plan has of mirrors: a group on each cluster that is read, and where it sends."""

from __future__ import annotations

from collections.abc import Iterator

from model.clients.errors import InvalidConfig
from model.clients.producer_settings import ProducerSettings, producer_settings
from model.plan import Forwarding
from scenarios.context import Context
from scenarios.message_schema import MirrorModel
from scenarios.problems import expected
from scenarios.schema import FilterModel, GroupModel, ScenarioModel

TOLD = ("zk.connect", "broker.list")
NOBODY = "0:nobody.example:9092"
"""Where the cluster that is sent to is a problem of its own."""
PLAIN = GroupModel.model_validate({"consumers": 0})
"""A group of which nothing is said."""


def group_name(mirror: str, source: str) -> str:
    """The group with which a mirror reads one of its sources."""
    return f"{mirror}-{source}"


def groups_of(scenario: ScenarioModel) -> Iterator[tuple[str, str, str]]:
    """Each group that mirrors have, with its mirror and the cluster that it reads."""
    for name, model in scenario.mirrors.items():
        for source in dict.fromkeys(model.from_):
            if source in scenario.clusters:
                yield group_name(name, source), name, source


def expand(context: Context) -> None:
    """Add the groups of mirrors to those that are named; refuse what cannot be mirrored."""
    scenario = context.scenario
    for name in scenario.mirrors:
        _check(context, name)
    made: dict[str, GroupModel] = {}
    for group, mirror, source in groups_of(scenario):
        if group in scenario.groups or group in scenario.producers:
            said = f"reads {source} as {group}, which is a name already; choose another"
            context.problem(("mirrors", mirror), said)
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
    storing = [one for one in clusters if clusters[one].storage is not None]
    what = "a cluster that stores messages"
    for at, source in enumerate(model.from_):
        if source not in storing:
            said = expected(source, what, storing)
            context.problem(("mirrors", name, "from", at), said)
    if model.to not in storing:
        context.problem(("mirrors", name, "to"), expected(model.to, what, storing))
    elif model.to in _fed_by(context.scenario, model.to):
        said = f"{model.to} gets back what it sends, again and again; let mirrors form no circle"
        context.problem(("mirrors", name, "to"), said)


def _fed_by(scenario: ScenarioModel, cluster: str) -> list[str]:
    """Every cluster to which messages come from one, over however many mirrors."""
    found: list[str] = []
    asked = [cluster]
    for one in asked:
        targets = [each.to for each in scenario.mirrors.values() if one in each.from_]
        found += targets
        asked += [each for each in dict.fromkeys(targets) if each not in asked]
    return found


# --- where it sends ---------------------------------------------------------------------


def forwarding(context: Context, group: str) -> Forwarding | None:
    """Where the group of a mirror sends what it is handed; None for any other group."""
    name = context.mirrored.get(group)
    if name is None:
        return None
    model = context.scenario.mirrors[name]
    _refuse_circle(context, name, group)
    settings = _settings(context, name, model)
    return Forwarding(name, model.to, model.topics, settings, model.commits)


def _settings(context: Context, name: str, model: MirrorModel) -> ProducerSettings:
    """The settings of a mirror's producers, who know the brokers of the target."""
    listed = context.addresses.get(model.to) or NOBODY
    for key in TOLD:
        if key in model.producer:
            said = f"is not a mirror's to set: its producers send to the brokers of {model.to}"
            context.problem(("mirrors", name, "producer", key), said)
    given = {key: one for key, one in model.producer.items() if key not in TOLD}
    try:
        return producer_settings({**given, "broker.list": listed})
    except InvalidConfig as error:
        context.problem(("mirrors", name, "producer"), str(error))
        return producer_settings({"broker.list": listed})


def _refuse_circle(context: Context, name: str, group: str) -> None:
    """A broker of the source at an address of the target would get back what it sends."""
    source, target = context.scenario.groups[group].cluster, context.scenario.mirrors[name].to
    common = _addresses(context, str(source)) & _addresses(context, target)
    if source != target and common:
        said = f"{source} and {target} have brokers at one address, {min(common)}"
        context.problem(("mirrors", name), f"{said}; give them different hosts or ports")


def _addresses(context: Context, cluster: str) -> set[str]:
    listed = context.addresses.get(cluster, "").split(",")
    return {one.partition(":")[2] for one in listed if one}
