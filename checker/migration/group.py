"""A group that moves its offsets: its state, and what can happen next.

The group reads one partition: others differ only in when messages arrive and when the partition
moves, and both are free here. The partition moves to any member at any time: its owner commits
and releases it, and another member begins where its settings say. A commit counts once the
member has written it to all stores. An operator bounces the members of an order one after
the other, begins the next stage when the wait of the last one is over, and may turn back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.model.offset_manager.migration import OffsetStorage, Order, Store, Wait

NO_OWNER = -1
NAMES = "ab"


class Bounds(NamedTuple):
    """What a search allows at most."""

    messages: int = 3
    kills: int = 1
    """Members that end without a commit; also between the two writes of a commit."""
    turns: int = 1
    """How often the operator goes back to the settings before."""
    writes_all: bool = False
    """Whether a member writes to ZooKeeper also what it takes to be there; 0.8.2.2 does not."""


class Group(Struct, frozen=True):
    """A state of the group, of the stores and of the operator."""

    stages: tuple[int, int]
    """The stage whose settings each member has."""
    reached: int
    """The stage to which the operator moves the members, or has moved them."""
    zookeeper: int | None
    kafka: int | None
    end: int
    """The messages of the partition."""
    acknowledged: int
    """The newest commit that was written to all stores of its member."""
    owner: int = NO_OWNER
    position: int = 0
    written: int | None = None
    """What the owner takes for the offset in ZooKeeper."""
    has_committed: bool = False
    """Whether there was a commit since all members have the settings of the stage."""
    began_below: bool = False
    """Whether a member has begun below what was acknowledged."""
    kills: int = 0
    turns: int = 0

    def committed(self) -> dict[Store, int | None]:
        """The offset in each store."""
        return {Store.ZOOKEEPER: self.zookeeper, Store.KAFKA: self.kafka}


class Step(NamedTuple):
    """A step: a sentence, and the state after it."""

    text: str
    after: Group


def initial(order: Order) -> Group:
    """Return a group that has committed 2 where it keeps its offsets.

    One that begins in Kafka came from ZooKeeper, where 1 is left.
    """
    if order.begins_in is Store.KAFKA:
        return Group((0, 0), 0, zookeeper=1, kafka=2, end=2, acknowledged=2)
    return Group((0, 0), 0, zookeeper=2, kafka=None, end=2, acknowledged=2)


class Steps:
    """The steps of a group in an order of stages."""

    def __init__(self, order: Order, bounds: Bounds) -> None:
        self.order = order
        self.bounds = bounds

    def of(self, group: Group) -> Iterator[Step]:
        """Yield each step that can come next."""
        if group.began_below:
            return
        if group.end < self.bounds.messages:
            yield Step("a message arrives", replace(group, end=group.end + 1))
        if group.owner == NO_OWNER:
            yield from self._takes(group)
        else:
            yield from self._of_owner(group)
        yield from self._bounces(group)
        yield from self._operator(group)

    # --- the partition -----------------------------------------------------------------

    def _settings(self, group: Group, member: int) -> OffsetStorage:
        return self.order.stages[group.stages[member]].settings

    def _takes(self, group: Group) -> Iterator[Step]:
        for member, name in enumerate(NAMES):
            settings = self._settings(group, member)
            start = settings.begins_at(group.committed())
            words = "finds no offset" if start is None else f"begins at {start}"
            after = replace(
                group,
                owner=member,
                position=start or 0,
                written=start,
                began_below=(start or 0) < group.acknowledged,
            )
            yield Step(f"{name} ({_short(settings)}) takes the partition, and {words}", after)

    def _of_owner(self, group: Group) -> Iterator[Step]:
        name = NAMES[group.owner]
        if group.position < group.end:
            yield Step(
                f"{name} consumes message {group.position}",
                replace(group, position=group.position + 1),
            )
        yield Step(f"{name} commits {group.position}", self._commit(group))
        released = replace(self._commit(group), owner=NO_OWNER)
        yield Step(f"{name} commits {group.position} and releases the partition", released)
        if group.kills < self.bounds.kills:
            killed = replace(group, owner=NO_OWNER, kills=group.kills + 1)
            yield Step(f"{name} is killed, and starts again", killed)
            if len(self._settings(group, group.owner).commits_to) > 1:
                yield Step(
                    f"{name} commits {group.position} to Kafka, and is killed before ZooKeeper",
                    replace(killed, kafka=group.position),
                )

    def _commit(self, group: Group) -> Group:
        """The state after a commit; ZooKeeper is not written if it seems to have the offset."""
        stores = self._settings(group, group.owner).commits_to
        after = replace(
            group,
            acknowledged=max(group.acknowledged, group.position),
            has_committed=self._is_uniform(group),
        )
        if Store.KAFKA in stores:
            after = replace(after, kafka=group.position)
        is_new = self.bounds.writes_all or group.written != group.position
        if Store.ZOOKEEPER in stores and is_new:
            after = replace(after, zookeeper=group.position, written=group.position)
        return after

    # --- the operator ------------------------------------------------------------------

    def _is_uniform(self, group: Group) -> bool:
        return set(group.stages) == {group.reached}

    def _bounces(self, group: Group) -> Iterator[Step]:
        for member, name in enumerate(NAMES):
            if group.stages[member] == group.reached:
                continue
            before = self._commit(group) if group.owner == member else group
            stages = list(group.stages)
            stages[member] = group.reached
            after = replace(
                before,
                stages=(stages[0], stages[1]),
                owner=NO_OWNER if group.owner == member else group.owner,
                has_committed=False,
            )
            words = _short(self._settings(after, member))
            yield Step(f"{name} leaves, and starts again with {words}", after)

    def _operator(self, group: Group) -> Iterator[Step]:
        last = len(self.order.stages) - 1
        if self._is_uniform(group) and group.reached < last and self._is_ready(group):
            stage = self.order.stages[group.reached + 1]
            text = f"the operator goes on to {_short(stage.settings)}"
            yield Step(text, replace(group, reached=group.reached + 1))
        # Members that have not left yet have the settings before; the others go back to them.
        is_between = set(group.stages) == {group.reached - 1, group.reached}
        if group.turns < self.bounds.turns and is_between:
            stage = self.order.stages[group.reached - 1]
            after = replace(group, reached=group.reached - 1, turns=group.turns + 1)
            yield Step(f"the operator turns back to {_short(stage.settings)}", after)

    def _is_ready(self, group: Group) -> bool:
        """Whether the wait of the stage is over."""
        wait = self.order.stages[group.reached].wait
        if wait is Wait.ONE_COMMIT:
            return group.has_committed
        if wait is Wait.NOT_BEHIND:
            next_store = self.order.stages[group.reached + 1].settings.storage
            committed = group.committed()
            return (committed[next_store] or 0) >= max(
                offset for offset in committed.values() if offset is not None
            )
        return True


def _short(settings: OffsetStorage) -> str:
    """The settings in a sentence."""
    dual = " and dual commit" if settings.dual_commit else ""
    return f"{settings.storage}{dual}"
