"""Mutated ways to make requests: each changes a request or its answer on the way.

`Direct` is the way of the hardened variant, `UntilConnected` the one of the shipped ones.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from msgspec.structs import replace

from watchkeeper.model.actor.errors import Failure, NoNode
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import (
    Create,
    Effect,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Pipelined,
    SetData,
)
from watchkeeper.model.actor.retry import Direct, UntilConnected, create_with_parents
from watchkeeper.model.registry import paths

T = TypeVar("T")


class FirstAnswerDecides(Direct):
    """In a batch that reads offsets, a failure of the first read counts for all of them."""

    async def __call__(self, effect: Effect[T]) -> T:
        """Make a request."""
        answer = await effect
        if type(effect) is Pipelined and effect.purpose == "read offsets":
            answers = cast(tuple[Any, ...], answer)
            first = answers[0]
            answer = cast(
                T, tuple(first if type(first) is Failure else answer for answer in answers)
            )
        return answer


class UnfencedCommits(Direct):
    """Offsets are written one by one, without the check of the own registration."""

    async def __call__(self, effect: Effect[T]) -> T:
        """Make a request."""
        if type(effect) is not Multi or effect.purpose != "commit":
            return await effect
        _, *writes = effect.operations
        for write in writes:
            assert isinstance(write, SetData), "a commit writes offsets"
            try:
                await write
            except NoNode:
                create = Create(write.path, write.data, purpose="commit")
                await create_with_parents(Direct(), create)
        return cast(T, ())


class MembersUnwatched(Direct):
    """The batch that reads the members of the group sets no watch on them."""

    async def __call__(self, effect: Effect[T]) -> T:
        """Make a request."""
        if type(effect) is not Pipelined:
            return await effect
        return cast(T, await Pipelined(tuple(map(_without_members_watch, effect.operations))))


def _without_members_watch(read: Operation[Any]) -> Operation[Any]:
    if isinstance(read, GetChildren) and read.purpose == "read members":
        return replace(read, watch=False)
    return read


class TopicsUnwatched(Direct):
    """The reads of a topic set no watch on it, whether it exists or not."""

    async def __call__(self, effect: Effect[T]) -> T:
        """Make a request."""
        if type(effect) is not Pipelined:
            return await effect
        # A read of a missing topic is followed by an Exists that does nothing but set a
        # watch. It is left out, and answered as if the topic were missing still.
        kept = [
            operation for operation in effect.operations if not _sets_topic_watch_only(operation)
        ]
        answers = iter(await Pipelined(tuple(map(_without_topic_watch, kept))) if kept else ())
        return cast(
            T,
            tuple(
                None if _sets_topic_watch_only(operation) else next(answers)
                for operation in effect.operations
            ),
        )


def _is_topic(read: Operation[Any]) -> bool:
    return paths.parent_of(read.path) == paths.TOPICS


def _sets_topic_watch_only(read: Operation[Any]) -> bool:
    return isinstance(read, Exists) and _is_topic(read)


def _without_topic_watch(read: Operation[Any]) -> Operation[Any]:
    if isinstance(read, GetChildren | GetData) and _is_topic(read):
        return replace(read, watch=False)
    return read


class AdoptsRegistration(Direct):
    """A registration under the own id counts as the own one, whichever session made it."""

    async def __call__(self, effect: Effect[T]) -> T:
        """Make a request."""
        answer = await effect
        is_registration = isinstance(effect, Exists) and effect.purpose == "register"
        if is_registration and isinstance(answer, ZnodeView):
            return cast(T, replace(answer, mine=True))
        return answer


class UnescapedFilters(UntilConnected):
    """The regular expression of a filter is written into JSON without escapes."""

    async def __call__(self, effect: Effect[T]) -> T:
        """Make a request."""
        if isinstance(effect, Create) and effect.purpose == "register" and effect.data:
            data = effect.data.replace(b"\\\\", b"\\")
            return await super().__call__(cast(Effect[T], replace(effect, data=data)))
        return await super().__call__(effect)
