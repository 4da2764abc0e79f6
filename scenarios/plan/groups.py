"""Builds the groups of a plan: members, settings and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from watchkeeper.model.actor.program import Program
from watchkeeper.model.group.settings import (
    KEYS,
    OF_FETCHES_08,
    ConsumerSettings,
    consumer_settings,
)
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.plan.plan import ConsumerFetches, ConsumerPlan, GroupPlan
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.registry.topic_filter import BadFilter, compiled, normalise
from watchkeeper.scenarios.plan.context import Context
from watchkeeper.scenarios.plan.messages import guarantee, handling, has_messages
from watchkeeper.scenarios.plan.mirrors import forwarding
from watchkeeper.scenarios.schema.entries import NOT_A_NAME, is_name
from watchkeeper.scenarios.schema.schema import ConsumerModel, FilterModel, GroupModel
from watchkeeper.scenarios.text.document import Path
from watchkeeper.scenarios.text.errors import expected, nearest, not_just_one, shown

MOST_CONSUMERS = 5_000
MOST_STREAMS = 1_000

OF_MESSAGES = (
    *("fetch_bytes", "fetch_backoff_ms", "queued_chunks"),
    *("socket_timeout_ms", "consumer_timeout_ms"),
)
"""Settings of consumers that have an effect only where brokers store messages."""
OF_COORDINATOR = ("dual_commit", "offsets_backoff_ms", "offsets_timeout_ms", "offsets_retries")
"""Settings of consumers that have an effect only with a coordinator."""
OF_INTERNAL_TOPICS = "exclude_internal_topics"
IDS = ("consumer.id", "consumerid")
"""The names of the setting by which several members may have one id, in 0.8 and in 0.7."""
PLAIN = ConsumerModel.model_validate({})
"""A consumer with every field at its default."""


def group(context: Context, name: str, program: Program | None) -> GroupPlan:
    """Build one group."""
    model = context.scenario.groups[name]
    listed = _listed(context, name, model)
    digits = len(str(max(len(listed) - 1, 0)))
    numbers = [f"{at:0{digits}d}" for at in range(len(listed))]
    consumers = tuple(
        _consumer(context, name, at, numbers[at], model, program)
        for at, model in enumerate(listed)
    )
    _check_ids(context, name, listed, consumers)
    if "fetch_every" in model.model_fields_set and _has_storage(context, name):
        message = "has no effect where brokers store messages; leave it out"
        context.problem(("groups", name, "fetch_every"), message)
    return GroupPlan(
        name,
        context.cluster_of(name),
        consumers,
        model.fetch_every,
        guarantee(context, name),
        handling(context, name),
        forwarding(context, name),
        _fetches(context, name),
        _followed(context, name),
    )


def _fetches(context: Context, name: str) -> ConsumerFetches:
    """How the consumers fetch; only brokers that replicate are fetched from in two ways."""
    model = context.scenario.groups[name]
    fetches = ConsumerFetches(model.fetches)
    cluster = context.cluster_of(name)
    replicates = context.scenario.clusters[cluster].replication is not None
    if "fetches" in model.model_fields_set and not replicates:
        message = f"has no effect: cluster {cluster} lacks `replication`; leave it out"
        context.problem(("groups", name, "fetches"), message)
    return fetches


def _followed(context: Context, name: str) -> str:
    """The group whose work this one takes over; empty if it starts its own."""
    followed = context.scenario.groups[name].follows
    if followed is None:
        return ""
    path: Path = ("groups", name, "follows")
    others = [group for group in context.scenario.groups if group != name]
    if followed not in others:
        context.problem(path, expected(followed, "another group", others))
        return ""
    if context.cluster_of(followed) == context.cluster_of(name):
        message = f"{followed} reads the same cluster; a group goes on there by its own offsets"
        context.problem(path, message)
    return followed


def _listed(context: Context, name: str, model: GroupModel) -> list[ConsumerModel]:
    if isinstance(model.consumers, list):
        return model.consumers
    if not 0 <= model.consumers <= MOST_CONSUMERS:
        message = f"{model.consumers} is not a number of consumers, 0 to {MOST_CONSUMERS}"
        context.problem(("groups", name, "consumers"), message)
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
    """Build one consumer from its own fields and, where those are absent, its group's."""
    shared = context.scenario.groups[group]
    path: Path = ("groups", group) if model is PLAIN else ("groups", group, "consumers", at)
    variant = context.variant_named(model.variant or shared.variant, (*path, "variant"))
    settings = _merged(context, path, shared, model)
    starts: int | None = shared.starts + at * shared.apart
    if model.starts is not None:
        starts = None if model.starts == "never" else model.starts
    return ConsumerPlan(
        node=f"{group}/{at}",
        host=model.host or f"{group}-{number}.example",
        configured_id=_configured_id(context, path, shared, model, settings)
        or ("" if shared.ids == "drawn" else f"c{number}"),
        subscription=_subscription(context, path, shared, model),
        variant=variant,
        settings=_settings(context, path, variant, settings),
        starts_us=starts,
        program=program,
    )


def _configured_id(
    context: Context,
    path: Path,
    shared: GroupModel,
    model: ConsumerModel,
    settings: dict[str, Any],
) -> str:
    """The id that a consumer is given: its `id`, or the setting; empty for neither.

    The setting is taken out of the settings.
    """
    found = ""
    for key in IDS:
        if key not in settings:
            continue
        value = settings.pop(key)
        place = _place_of(context, path, key)
        if not isinstance(value, str) or not is_name(value):
            context.problem(place, f"{shown(value)} {NOT_A_NAME}")
            continue
        found = value
        if model.id is not None and key in model.config:
            context.problem(place, "is another name of `id`; expected only one of the two")
    return model.id or found


def _check_ids(
    context: Context,
    group: str,
    models: Sequence[ConsumerModel],
    consumers: tuple[ConsumerPlan, ...],
) -> None:
    """Refuse two consumers with one id, unless the setting gives it to both of them.

    Two processes with one file of settings have one id. Two equal `id`s are a slip.
    """
    nodes: dict[str, str] = {}
    by_setting = {
        consumer.node
        for consumer, model in zip(consumers, models, strict=True)
        if model.id is None and any(_has_setting(context, group, model, key) for key in IDS)
    }
    for at, consumer in enumerate(consumers):
        first = (
            nodes.setdefault(consumer.configured_id, consumer.node)
            if consumer.configured_id
            else consumer.node
        )
        if first != consumer.node and not {first, consumer.node} <= by_setting:
            message = (
                f"{consumer.configured_id!r} is the id of {first}; expected an id of its own; "
                "to give one id to several members, set `consumer.id` in their `config`"
            )
            context.problem(("groups", group, "consumers", at, "id"), message)


def _has_setting(context: Context, group: str, model: ConsumerModel, key: str) -> bool:
    return key in model.config or key in context.scenario.groups[group].config


# --- settings --------------------------------------------------------------------------


def _merged(
    context: Context, own: Path, shared: GroupModel, model: ConsumerModel
) -> dict[str, Any]:
    """The settings of a consumer: its own override those of its group."""
    _check_names(context, (*own, "config"), model.config)
    _check_names(context, (*own[:2], "config"), shared.config)
    mine = {_field(key) for key in model.config}
    left = {key: value for key, value in shared.config.items() if _field(key) not in mine}
    return {**left, **model.config}


def _check_names(context: Context, path: Path, config: Mapping[str, Any]) -> None:
    """Refuse two spellings of one setting: each release of Kafka has its own name for it."""
    names: dict[str, str] = {}
    for key in config:
        first = names.setdefault(_field(key), key)
        if first != key:
            message = f"is another name of {first}; expected only one of the two"
            context.problem((*path, key), message)


def _field(key: str) -> str:
    """The field that a setting's name stands for; the name itself if it is unknown."""
    if key in IDS:
        return IDS[0]
    return KEYS[key].field if key in KEYS else key


def _settings(
    context: Context, path: Path, variant: Variant, config: Mapping[str, Any]
) -> ConsumerSettings:
    """A consumer's settings."""
    for key, value in config.items():
        try:
            consumer_settings(variant.release, {key: value})
        except ValueError as error:
            context.problem(_place_of(context, path, key), str(error))
            return consumer_settings(variant.release)
    _check_effects(context, path, config)
    return consumer_settings(variant.release, config)


def _check_effects(context: Context, path: Path, config: Mapping[str, Any]) -> None:
    """Refuse settings without an effect: those of the message path where a log is only a rate."""
    cluster, has_storage = context.cluster_of(str(path[1])), _has_storage(context, str(path[1]))
    fetches = context.scenario.groups[str(path[1])].fetches
    for key in config:
        if _field(key) in OF_FETCHES_08 and fetches != ConsumerFetches.KAFKA_08.value:
            message = f"has no effect without `fetches: {ConsumerFetches.KAFKA_08}`; leave it out"
            context.problem(_place_of(context, path, key), message)
        if _field(key) in OF_MESSAGES and not has_storage:
            message = f"is about messages: cluster {cluster} lacks `storage` and `replication`"
            context.problem(_place_of(context, path, key), message)
        if _field(key) == "offsets_storage" and config[key] == "kafka":
            _check_coordinator(context, path, key)
        if _field(key) in OF_COORDINATOR and _storage_of(config) != "kafka":
            message = "has no effect without `offsets.storage: kafka`; leave it out"
            context.problem(_place_of(context, path, key), message)
        if _field(key) == OF_INTERNAL_TOPICS:
            message = "has no effect: no topic of a scenario is internal; leave it out"
            context.problem(_place_of(context, path, key), message)


def _storage_of(config: Mapping[str, Any]) -> Any:
    return next((value for key, value in config.items() if _field(key) == "offsets_storage"), "")


def _check_coordinator(context: Context, path: Path, key: str) -> None:
    """Refuse offsets in Kafka where no broker coordinates groups, or none are committed."""
    group = str(path[1])
    cluster = context.cluster_of(group)
    handling = context.scenario.groups[group].handling
    message = ""
    if context.scenario.clusters[cluster].replication is None:
        message = (
            f"needs brokers that coordinate groups; expected `replication` in cluster {cluster}"
        )
    elif handling is not None and handling.commits == "with the result":
        message = "has no effect where positions are stored with the results; leave it out"
    if message:
        context.problem(_place_of(context, path, key), message)


def _has_storage(context: Context, group: str) -> bool:
    """Whether the brokers that a group reads from store messages."""
    return has_messages(context.scenario.clusters[context.cluster_of(group)])


def _place_of(context: Context, path: Path, key: str) -> Path:
    """Where a setting of a consumer stands: with the consumer, or with its group."""
    place: Path = (*path, "config", key)
    return place if place in context.document.lines else (*path[:2], "config", key)


# --- what it wants ---------------------------------------------------------------------


def _subscription(
    context: Context, own: Path, shared: GroupModel, model: ConsumerModel
) -> Subscription:
    """The subscription of a consumer: its own, or its group's."""
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
            message = f"{count} is not a number of streams, 1 to {MOST_STREAMS}"
            context.problem((*path, "streams", topic), message)
        _check_topic(context, str(own[1]), (*path, "streams", topic), topic)
    return Subscription(tuple(source.streams.items()))


def _check_topic(context: Context, group: str, path: Path, topic: str) -> None:
    """Check that a topic is in the group's cluster, or is created there by the timeline."""
    cluster = context.cluster_of(group)
    known = context.topics_of(cluster)
    if topic in known:
        return
    elsewhere = [
        other for other in context.scenario.clusters if topic in context.topics_of(other)
    ]
    if elsewhere:
        message = f"is a topic of the cluster {elsewhere[0]}, and the group reads from {cluster}"
        context.problem(path, message)
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
