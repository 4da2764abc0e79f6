"""Makes the groups of a plan: who is in them, with which settings, and what they want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model.filters import BadFilter, compiled, normalise
from model.plan import ConsumerPlan, GroupPlan
from model.program import Program
from model.settings import ConsumerSettings, consumer_settings
from model.subscriptions import Subscription
from model.variants import Variant
from scenarios.context import Context
from scenarios.problems import nearest
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
    if model.fetch_every <= 0:
        context.problem(("groups", name, "fetch_every"), "must be longer than nothing")
    return GroupPlan(name, context.cluster_of(name), consumers, model.fetch_every)


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
        settings=_settings(context, path, variant, {**shared.config, **model.config}),
        starts_us=starts,
        program=program,
    )


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
    if (source.streams is None) == (source.filter is None):
        context.problem(path, "needs either `streams` or `filter`")
        return Subscription()
    if source.filter is not None:
        return _filter(context, (*path, "filter"), source.filter)
    assert source.streams is not None, "one of the two is given"
    for topic, count in source.streams.items():
        if not 1 <= count <= MOST_STREAMS:
            said = f"{count} is not a number of streams, 1 to {MOST_STREAMS}"
            context.problem((*path, "streams", topic), said)
        _check_topic(context, (*path, "streams", topic), topic)
    return Subscription(tuple(source.streams.items()))


def _check_topic(context: Context, path: Path, topic: str) -> None:
    """A topic has to be there, or to come by the timeline."""
    scenario = context.scenario
    known = {name for cluster in scenario.clusters.values() for name in cluster.topics}
    made = [getattr(entry, "create_topic") for entry in scenario.timeline]  # noqa: B009
    known.update(name for name in made if name is not None)
    if topic not in known:
        context.problem(path, f"there is no such topic{nearest(topic, sorted(known))}")


def _filter(context: Context, path: Path, model: FilterModel) -> Subscription:
    """A topic filter."""
    if (model.white_list is None) == (model.black_list is None):
        context.problem(path, "needs either `white_list` or `black_list`")
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
