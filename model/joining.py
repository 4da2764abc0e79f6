"""How a consumer joins its group: it registers, and leaves the watches that it lives by.

The pages give registration in five steps:

  1  register the own id under the group
  2  watch the ids of the group: each change rebalances every consumer of the group
  3  watch the brokers: each change rebalances all consumers of all groups
  4  with a topic filter, watch the topics: a newly allowed one rebalances the group
  5  force a rebalance of oneself
"""

from __future__ import annotations

from msgspec.structs import replace

from model import flaws, registry
from model.asks import now_ms, sleep
from model.errors import NodeExists, NoNode
from model.filters import topic_filter
from model.member import Consumer, Memory, id_path, registration
from model.operations import Create, Exists, GetChildren, GetData, Purpose
from model.program import Ended
from model.requests import Requests, create_with_parents
from model.views import topics_of


async def register(me: Consumer, memory: Memory, requests: Requests) -> Memory | Ended:
    """Step 1: register the own id."""
    path = id_path(me, memory)
    data = registration(me, await now_ms())
    if me.variant.flaw == "filters are not escaped":
        data = flaws.unescaped(data)
    registered = replace(memory, is_registered=True, is_dirty=True, guard=0)
    try:
        await create_with_parents(
            requests, Create(path, data, ephemeral=True, purpose="register")
        )
        return registered
    except NodeExists:
        return await _id_in_use(me, memory, requests, data)


async def _id_in_use(
    me: Consumer, memory: Memory, requests: Requests, data: bytes
) -> Memory | Ended:
    """Somebody has my id: an earlier session of mine, or another consumer, or I myself."""
    path = id_path(me, memory)
    in_use = me.variant.own_id_in_use
    registered = replace(memory, is_registered=True, is_dirty=True, guard=None)
    if in_use == "wait for it to go":
        seen = await requests(Exists(path, True, "register"))
        if seen is None:
            return memory
        is_mine = seen.mine or me.variant.flaw == "what bears my name is mine"
        return registered if is_mine else replace(memory, is_blocked=True)
    try:
        there = await requests(GetData(path, False, "register"))
    except NoNode:
        return memory
    if in_use == "mine if the data is the same" and there.data == data:
        return registered
    if in_use == "sleep and try again":
        await sleep(me.settings.session_timeout_ms)
        return memory
    return registered if there.mine else Ended(f"{path} is in use by another", failed=True)


async def watch(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """Steps 2 to 4: leave the watches; step 5 follows, since registering marked a change."""
    if me.variant.watches == "all that was read":
        return replace(memory, is_watching=True)
    await leave_child_watch(requests, registry.members(me.group), "watch members")
    topics = memory.topics
    if me.subscription.is_filter:
        topics = await look_at_topics(me, requests, watch=_filter_is_watched(me))
    if me.variant.watches == "members and brokers":
        await leave_child_watch(requests, registry.BROKER_IDS, "watch brokers")
    else:
        for topic in topics_of(me, me.subscription, topics or ()):
            await watch_topic(me, requests, topic)
        if memory.sees_no_brokers:
            await leave_child_watch(requests, registry.BROKER_IDS, "watch brokers")
    return replace(memory, is_watching=True, topics=topics)


def _filter_is_watched(me: Consumer) -> bool:
    if me.variant.filters_watched == "all":
        return True
    return topic_filter(me.subscription).needs_topic_watch


async def watch_topic(me: Consumer, requests: Requests, topic: str) -> None:
    """Watch what says which partitions a topic has: 0.7 its children, 0.8 its data."""
    if me.layout == "0.7":
        await leave_child_watch(requests, registry.topic(topic), "watch topics")
    else:
        await requests(Exists(registry.topic(topic), True, "watch topics"))


async def leave_child_watch(requests: Requests, path: str, purpose: Purpose) -> tuple[str, ...]:
    """Leave a watch on the children of a path, or on its creation if there is none yet."""
    while True:
        try:
            return await requests(GetChildren(path, True, purpose))
        except NoNode:
            if await requests(Exists(path, True, purpose)) is None:
                return ()


async def look_at_topics(me: Consumer, requests: Requests, *, watch: bool) -> tuple[str, ...]:
    """Step 4: which topics does the filter allow now?"""
    if watch:
        listed = await leave_child_watch(requests, registry.TOPICS, "watch topics")
    else:
        listed = await requests(GetChildren(registry.TOPICS, False, "watch topics"))
    return topics_of(me, me.subscription, listed)
