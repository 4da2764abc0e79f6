"""Makes the groups of a plan: who is in them, with which settings, and what they want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model.filters import BadFilter, compiled, normalise
from model.plan import ConsumerPlan, GroupPlan
from model.program import Program
from model.settings import KEYS, ConsumerSettings, consumer_settings
from model.subscriptions import Subscription
from model.variants import Variant
from scenarios.context import Context
from scenarios.messages import handling, promise
from scenarios.mirrors import forwarding
from scenarios.problems import expected, nearest, not_just_one
from scenarios.reading import Path
from scenarios.schema import ConsumerModel, FilterModel, GroupModel

MOST_CONSUMERS = 5_000
MOST_STREAMS = 1_000

PLAIN = ConsumerModel.model_validate({})
"""A consumer of whom nothing is said."""


def group(context: Context, name: str, program: Program | None) -> GroupPlan:
    """One group."""
    model = context.scenario.groups[name]
    listed = _listed(context, name, model)
    digits = len(str(max(len(listed) - 1, 0)))
    numbers = [f"{at:0{digits}d}" for at in range(len(listed))]
    consumers = tuple(
        _consumer(context, name, at, numbers[at], one, program) for at, one in enumerate(listed)
    )
    _check_ids(context, name, consumers)
    return GroupPlan(
        name,
        context.cluster_of(name),
        consumers,
        model.fetch_every,
        promise(context, name),
        handling(context, name),
        forwarding(context, name),
        _followed(context, name),
    )


def _followed(context: Context, name: str) -> str:
    """The group whose work this one goes on with; empty if it begins its own."""
    followed = context.scenario.groups[name].follows
    if followed is None:
        return ""
    path: Path = ("groups", name, "follows")
    others = [one for one in context.scenario.groups if one != name]
    if followed not in others:
        context.problem(path, expected(followed, "another group", others))
        return ""
    if context.cluster_of(followed) == context.cluster_of(name):
        said = f"{followed} reads the same cluster; a group goes on there by its own offsets"
        context.problem(path, said)
    return followed


def _listed(context: Context, name: str, model: GroupModel) -> list[ConsumerModel]:
    if isinstance(model.consumers, list):
        return model.consumers
    if not 0 <= model.consumers <= MOST_CONSUMERS:
        said = f"{model.consumers} is not a number of consumers, 0 to {MOST_CONSUMERS}"
        context.problem(("groups", name, "consumers"), said)
        return []
    return [PLAIN] * model.consumers


def _consumer(
    context: Context,
    group: str,
    at: int,
    number: str,
    model: ConsumerModel,
    program: Program | None,
) -> ConsumerPlan:
    """One consumer: what is said of it, and of its group where nothing is."""
    shared = context.scenario.groups[group]
    path: Path = ("groups", group) if model is PLAIN else ("groups", group, "consumers", at)
    variant = context.variant_named(model.variant or shared.variant, (*path, "variant"))
    numbered = "" if shared.ids == "drawn" else f"c{number}"
    starts: int | None = shared.starts + at * shared.apart
    if model.starts is not None:
        starts = None if model.starts == "never" else model.starts
    return ConsumerPlan(
        node=f"{group}/{at}",
        host=model.host or f"{group}-{number}.example",
        configured_id=model.id or numbered,
        subscription=_subscription(context, path, shared, model),
        variant=variant,
        settings=_settings(context, path, variant, _merged(context, path, shared, model)),
        starts_us=starts,
        program=program,
    )


def _check_ids(context: Context, group: str, consumers: tuple[ConsumerPlan, ...]) -> None:
    """Two consumers of one id would take each other's registration for their own."""
    nodes: dict[str, str] = {}
    for at, one in enumerate(consumers):
        first = nodes.setdefault(one.configured_id, one.node) if one.configured_id else one.node
        if first != one.node:
            said = f"{one.configured_id!r} is the id of {first}; expected an id of its own"
            context.problem(("groups", group, "consumers", at, "id"), said)


# --- settings --------------------------------------------------------------------------


def _merged(
    context: Context, own: Path, shared: GroupModel, model: ConsumerModel
) -> dict[str, Any]:
    """The settings that are given: a consumer's own stand in for its group's."""
    _check_names(context, (*own, "config"), model.config)
    _check_names(context, (*own[:2], "config"), shared.config)
    mine = {_field(key) for key in model.config}
    left = {key: value for key, value in shared.config.items() if _field(key) not in mine}
    return {**left, **model.config}


def _check_names(context: Context, path: Path, config: Mapping[str, Any]) -> None:
    """A setting has a name in each release of Kafka; a file may use one of them."""
    names: dict[str, str] = {}
    for key in config:
        first = names.setdefault(_field(key), key)
        if first != key:
            said = f"is another name of {first}; expected only one of the two"
            context.problem((*path, key), said)


def _field(key: str) -> str:
    """What a setting sets; the key itself if there is none of this name."""
    return KEYS[key].field if key in KEYS else key


def _settings(
    context: Context, path: Path, variant: Variant, config: Mapping[str, Any]
) -> ConsumerSettings:
    """A consumer's settings."""
    for key, value in config.items():
        try:
            consumer_settings(variant.release, {key: value})
        except ValueError as error:
            place: Path = (*path, "config", key)
            if place not in context.document.lines:
                place = (*path[:2], "config", key)
            context.problem(place, str(error))
            return consumer_settings(variant.release)
    return consumer_settings(variant.release, config)


# --- what it wants ---------------------------------------------------------------------


def _subscription(
    context: Context, own: Path, shared: GroupModel, model: ConsumerModel
) -> Subscription:
    """What a consumer wants: what it says itself, or what its group says."""
    says_itself = model.streams is not None or model.filter is not None
    path, source = (own, model) if says_itself else (own[:2], shared)
    wrong = not_just_one(streams=source.streams, filter=source.filter)
    if wrong:
        context.problem(path, wrong)
        return Subscription()
    if source.filter is not None:
        return _filter(context, (*path, "filter"), source.filter)
    assert source.streams is not None, "one of the two is given"
    for topic, count in source.streams.items():
        if not 1 <= count <= MOST_STREAMS:
            said = f"{count} is not a number of streams, 1 to {MOST_STREAMS}"
            context.problem((*path, "streams", topic), said)
        _check_topic(context, str(own[1]), (*path, "streams", topic), topic)
    return Subscription(tuple(source.streams.items()))


def _check_topic(context: Context, group: str, path: Path, topic: str) -> None:
    """A topic has to be in the group's cluster, or to come there by the timeline."""
    cluster = context.cluster_of(group)
    known = context.topics_of(cluster)
    if topic in known:
        return
    elsewhere = [
        other for other in context.scenario.clusters if topic in context.topics_of(other)
    ]
    if elsewhere:
        said = f"is a topic of the cluster {elsewhere[0]}, and the group reads from {cluster}"
        context.problem(path, said)
        return
    context.problem(path, f"there is no such topic{nearest(topic, sorted(known))}")


def _filter(context: Context, path: Path, model: FilterModel) -> Subscription:
    """A topic filter."""
    wrong = not_just_one(white_list=model.white_list, black_list=model.black_list)
    if wrong:
        context.problem(path, wrong)
        return Subscription()
    expression = model.white_list or model.black_list
    assert expression is not None, "one of the two is given"
    try:
        compiled(normalise(expression))
    except BadFilter as error:
        context.problem(path, str(error))
    if model.white_list is not None:
        return Subscription((), "white_list", expression, model.streams)
    return Subscription((), "black_list", expression, model.streams)
