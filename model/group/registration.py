"""The registration of a consumer: it writes its id and sets its watches.

The pages give registration in five steps:

  1  register the own id under the group
  2  watch the ids of the group: each change rebalances every consumer of the group
  3  watch the brokers: each change rebalances all consumers of all groups
  4  with a topic filter, watch the topics: a newly allowed one rebalances the group
  5  force a rebalance of oneself
"""

from __future__ import annotations

from msgspec.structs import replace

from watchkeeper.model.actor.effects import now_ms, sleep
from watchkeeper.model.actor.errors import NodeExists, NoNode
from watchkeeper.model.actor.operations import Create, Exists, GetChildren, GetData, Purpose
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.actor.retry import Requests, create_with_parents
from watchkeeper.model.group.reads import topics_of
from watchkeeper.model.group.state import Consumer, ConsumerState, id_path, registration
from watchkeeper.model.group.variants import OwnIdInUse, WatchedFilters, WatchedPaths
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.topic_filter import topic_filter


async def register(
    me: Consumer, state: ConsumerState, requests: Requests
) -> ConsumerState | Ended:
    """Step 1: register the own id."""
    path = id_path(me, state)
    data = registration(me, await now_ms())
    registered = replace(state, is_registered=True, is_dirty=True, fence_version=0)
    try:
        await create_with_parents(
            requests, Create(path, data, ephemeral=True, purpose="register")
        )
        return registered
    except NodeExists:
        return await _id_in_use(me, state, requests, data)


async def _id_in_use(
    me: Consumer, state: ConsumerState, requests: Requests, data: bytes
) -> ConsumerState | Ended:
    """Handle an id that exists already.

    It may belong to the previous session of this process, to another consumer, or to the
    current session: the create succeeded, but its response was lost.
    """
    path = id_path(me, state)
    in_use = me.variant.own_id_in_use
    registered = replace(state, is_registered=True, is_dirty=True, fence_version=None)
    if in_use is OwnIdInUse.WAIT_FOR_DELETION:
        seen = await requests(Exists(path, True, "register"))
        if seen is None:
            return state
        return registered if seen.mine else replace(state, is_blocked=True)
    try:
        found = await requests(GetData(path, False, "register"))
    except NoNode:
        return state
    # The data of 0.8 has the time of the attempt, and a search has one time for all attempts:
    # only a create that was repeated after a lost reply can find what this attempt has written.
    is_comparable = in_use is OwnIdInUse.MINE_IF_SAME_DATA or (
        in_use is OwnIdInUse.SLEEP_AND_RETRY and requests.repeated
    )
    if is_comparable and found.data == data:
        return registered
    if in_use is OwnIdInUse.SLEEP_AND_RETRY:
        await sleep(me.settings.session_timeout_ms)
        return state
    if found.mine:
        return registered
    return Ended(f"{path} is in use by another", failed=True)


async def watch(me: Consumer, state: ConsumerState, requests: Requests) -> ConsumerState:
    """Steps 2 to 4: set the watches. Step 5 follows: registering made the state dirty."""
    if me.variant.watches is WatchedPaths.ALL_READ:
        return replace(state, is_watching=True)
    await set_child_watch(requests, paths.members(me.group), "watch members")
    topics = state.topics
    if me.subscription.is_filter:
        topics = await read_topics(me, requests, watch=_filter_is_watched(me))
    if me.variant.watches is WatchedPaths.MEMBERS_AND_BROKERS:
        await set_child_watch(requests, paths.BROKER_IDS, "watch brokers")
    else:
        for topic in topics_of(
            me.subscription, topics or (), hides_internal=me.settings.exclude_internal_topics
        ):
            await watch_topic(me, requests, topic)
        if state.sees_no_brokers:
            await set_child_watch(requests, paths.BROKER_IDS, "watch brokers")
    return replace(state, is_watching=True, topics=topics)


def _filter_is_watched(me: Consumer) -> bool:
    if me.variant.filters_watched is WatchedFilters.ALL:
        return True
    return topic_filter(me.subscription).needs_topic_watch


async def watch_topic(me: Consumer, requests: Requests, topic: str) -> None:
    """Watch the partitions of a topic: in 0.7 its children, in 0.8 its data."""
    if me.layout == "0.7":
        await set_child_watch(requests, paths.topic(topic), "watch topics")
    else:
        await requests(Exists(paths.topic(topic), True, "watch topics"))


async def set_child_watch(requests: Requests, path: str, purpose: Purpose) -> tuple[str, ...]:
    """Watch the children of a path and return them; watch its creation if it is missing."""
    while True:
        try:
            return await requests(GetChildren(path, True, purpose))
        except NoNode:
            if await requests(Exists(path, True, purpose)) is None:
                return ()


async def read_topics(me: Consumer, requests: Requests, *, watch: bool) -> tuple[str, ...]:
    """Step 4: return the topics that the filter allows now."""
    if watch:
        listed = await set_child_watch(requests, paths.TOPICS, "watch topics")
    else:
        listed = await requests(GetChildren(paths.TOPICS, False, "watch topics"))
    return topics_of(me.subscription, listed, hides_internal=me.settings.exclude_internal_topics)
