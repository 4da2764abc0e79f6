"""The creation of topics that a client wants (`auto.create.topics.enable`).

A broker that does not know a topic writes its assignment, as the tool does that creates topics;
the controller then elects leaders. Until it has, the client gets no leader and asks again.
Several brokers may do so at once: one assignment counts. As shipped each of them writes the
settings of the topic first, which are none. So one whose assignment does not count may replace
the settings of another one, or of a tool.

Kafka 0.8.2.2: KafkaApis.handleTopicMetadataRequest, AdminUtils.createTopic.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from watchkeeper.model.actor.effects import emit
from watchkeeper.model.actor.errors import NodeExists, NoNode, ZooKeeperError
from watchkeeper.model.actor.operations import Create, Exists, GetChildren, SetData
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.actor.tasks import below
from watchkeeper.model.admin.placement import place
from watchkeeper.model.admin.plan import Refused
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment, TopicConfig
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.replication.variants import SettingsOfNewTopic
from watchkeeper.model.trace.kinds import EventKind


def create_missing_topics(all_of: Replicas) -> None:
    """Let a broker create topics that a client wants, if its settings say so."""
    how = all_of.me.auto_creation
    if how is not None:
        settings = all_of.me.variant.settings_of_new_topic
        all_of.hooks.on_missing_topic = partial(create_if_missing, how, settings=settings)


async def create_if_missing(
    how: AutoCreation,
    topic: str,
    *,
    settings: SettingsOfNewTopic = SettingsOfNewTopic.LEFT,
) -> None:
    """Create a topic that is not there; the trace says what came of it.

    A broker that cannot reach ZooKeeper, or that sees too few brokers, creates none.
    """
    try:
        if await Exists(paths.topic(topic), False, "create topic") is None:
            await _create(how, settings, topic)
    except ZooKeeperError as error:
        await _note(topic, why=str(error))


async def _create(how: AutoCreation, settings: SettingsOfNewTopic, topic: str) -> None:
    names = await GetChildren(paths.BROKER_IDS, False, "create topic")
    brokers = [int(name) for name in names if name.isdigit()]
    start, shift = await below(max(len(brokers), 1)), await below(max(len(brokers), 1))
    try:
        placed = place(brokers, how.partitions, how.replicas, start=start, shift=shift)
    except Refused as why:
        await _note(topic, why=str(why))
        return
    if settings is SettingsOfNewTopic.WRITTEN:
        await _write_settings(topic)
    data = TopicAssignment(tuple(placed.items())).encode()
    try:
        creation = Create(paths.topic(topic), data, purpose="create topic")
        await create_with_parents(Direct(), creation)
    except NodeExists:
        return
    await _note(topic, replicas=[list(replicas) for replicas in placed.values()])


async def _write_settings(topic: str) -> None:
    """Write no settings over whatever is there."""
    path, none = paths.topic_config(topic), TopicConfig().encode()
    try:
        await SetData(path, none, purpose="create topic")
    except NoNode:
        with suppress(NodeExists):
            creation = Create(path, none, purpose="create topic")
            await create_with_parents(Direct(), creation)


async def _note(topic: str, **detail: object) -> None:
    await emit(EventKind.TOPIC_AUTO_CREATED, topic=topic, **detail)
