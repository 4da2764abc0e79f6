"""What a command changes in the assignment of topics, in the program and in the nemesis."""

from __future__ import annotations

import pytest

from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.broker.administrator import assigned_after
from watchkeeper.model.nemesis.placement import reassign
from watchkeeper.model.registry.payloads import TopicAssignment

CLICKS = TopicAssignment(((0, (1,)), (1, (0, 1))))
VIEWS = TopicAssignment(((0, (0,)),))
BEFORE = {"clicks": CLICKS, "views": VIEWS}


@pytest.mark.parametrize(
    ("command", "after"),
    [
        (
            Command(CommandKind.CREATE_TOPIC, "likes", 3),
            {**BEFORE, "likes": TopicAssignment(((0, (2,)), (1, (5,)), (2, (2,))))},
        ),
        (
            Command(CommandKind.ADD_PARTITIONS, "clicks", 3),
            {"views": VIEWS, "clicks": TopicAssignment((*CLICKS.replicas, (2, (2,))))},
        ),
        (Command(CommandKind.ADD_PARTITIONS, "clicks", 1), {"views": VIEWS, "clicks": CLICKS}),
        (Command(CommandKind.DELETE_TOPIC, "views"), {"clicks": CLICKS}),
        (Command(CommandKind.DELETE_TOPIC, "likes"), BEFORE),
        (Command(CommandKind.MOVE_LEADER, "clicks", 0, 1), BEFORE),
    ],
    ids=lambda one: one.kind.value if isinstance(one, Command) else "",
)
def test_a_command_changes_one_topic(command: Command, after: dict[str, TopicAssignment]) -> None:
    """New partitions go to the live brokers in turn; those that there are stay where they are."""
    homes = dict(BEFORE)
    reassign(homes, command, (2, 5))

    assert assigned_after(BEFORE, command, (2, 5)) == after
    assert homes == after


def test_without_a_live_broker_a_partition_has_no_home() -> None:
    command = Command(CommandKind.CREATE_TOPIC, "likes", 1)

    assert assigned_after({}, command, ()) == {"likes": TopicAssignment(((0, ()),))}
