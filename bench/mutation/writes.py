"""What members write of themselves, and what ZooKeeper refuses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench.mutation.account import Account

from watchkeeper.model.group.variants import OwnerValue
from watchkeeper.model.plan.plan import ConsumerPlan, Plan
from watchkeeper.model.properties.history import History
from watchkeeper.model.registry.paths import parse_member, parse_owner
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

WROTE = ("created", "changed")
DISTURBS = frozenset(
    {EventKind.SUSPENDED, EventKind.EXPIRED, EventKind.FAULT, EventKind.TURN_FAILED}
)


class Writes(Account):
    """Registrations, claims and refusals: `registration`, `claim`, `refused`."""

    def __init__(self, plan: Plan, history: History) -> None:
        super().__init__(plan, history)
        self.disturbed: set[str] = set()
        """Members that have lost a connection, or that a fault has struck."""
        self.is_operated = False
        """Whether an operator has written."""

    def take(self, event: Event) -> None:
        """Follow a write, or an answer."""
        if event.kind == EventKind.APPLIED:
            self._applied(event)
        elif event.kind in DISTURBS:
            self.disturbed |= {event.node, *event.detail.get("members", ())}
        elif event.kind == EventKind.RESPONSE and event.node in self.members:
            self._answered(event)

    def _applied(self, event: Event) -> None:
        node = str(event.detail.get("by", ""))
        if node == "operator":
            self.is_operated = True
        if node not in self.members:
            return
        group, member = self.members[node]
        layout = self.plan.cluster(group.cluster).layout
        for what, path, _, data in _written(event):
            if parse_member(path) and not says(str(data), member.subscription, layout):
                self.found.add("registration")
            if parse_owner(path) and what in WROTE and not self._is_own(str(data), node, member):
                self.found.add("claim")

    def _is_own(self, data: str, node: str, member: ConsumerPlan) -> bool:
        """Whether a claim names the member that makes it, and one of its streams."""
        for path in self.history.registered.get(node, ()):
            name = path.rpartition("/")[2]
            if member.variant.owner_value is OwnerValue.CONSUMER:
                return data == name
            stream = data.removeprefix(f"{name}-")
            return stream.isdecimal() and int(stream) < _streams(member.subscription)
        return True  # It has lost its registration, and writes on.

    def _answered(self, event: Event) -> None:
        """Note a refusal that an undisturbed member cannot meet: nothing else writes its znodes.

        It knows the version of its registration and its own claims, and it alone commits in the
        partitions that it has claimed.
        """
        _, member = self.members[event.node]
        answer = event.detail.get("answer")
        if not isinstance(answer, dict) or "error" not in answer or self.is_operated:
            return
        is_fenced = member.variant.fenced and event.detail["op"] == "multi"
        if not is_fenced or event.node in self.disturbed:
            return
        purpose, error = event.detail["purpose"], answer["error"]
        if error == "BadVersion" or purpose == "release" or (purpose, error) == COMMITTED:
            self.found.add("refused")


COMMITTED = ("commit", "NodeExists")


def _written(event: Event) -> Iterator[tuple[Any, ...]]:
    return (tuple(did) for did in event.detail["did"] if did[0] != "deleted")


def _streams(subscription: Subscription) -> int:
    """The largest number of streams of a member."""
    counts = [count for _, count in subscription.streams]
    return max([*counts, subscription.filter_streams])


def says(data: str, subscription: Subscription, layout: str) -> bool:
    """Whether a registration says what a member subscribes to, in the form of its layout."""
    if layout == "0.7" and subscription.is_filter:
        mark = {"white_list": "*", "black_list": "!"}[subscription.pattern]
        return data == f"{mark}{subscription.filter_streams}{mark}{subscription.expression}"
    try:
        fields = json.loads(data)
    except ValueError:
        return False
    if layout == "0.7":
        return bool(fields == dict(subscription.streams))
    wanted = dict(subscription.streams)
    if subscription.is_filter:
        wanted = {subscription.expression: subscription.filter_streams}
    timestamp = fields.pop("timestamp", "")
    expected = {"version": 1, "pattern": subscription.pattern, "subscription": wanted}
    return bool(fields == expected and str(timestamp).isdecimal())
