"""What the shipped controller does when its reign is over.

The client library queues a callback for each change that it sees, and resignation removes none
of them: they run afterwards (KAFKA-4447). The controller has forgotten its epoch, the states of
partitions and replicas and its channels; assignments, leaders and requests it remembers. So a
callback may create the state of a new partition, signed with epoch 0, or drop a request that the
next controller carries out. What it would send has no channel: an error, which leaves the batch
full (KAFKA-2300).

A thread lets preferred replicas lead, one after the other, and takes the controller's lock for
each. A resignation holds that lock, and waits for the thread to end: for a day (KAFKA-4360).

Kafka 0.8.2.2: KafkaController.onControllerResignation; zkclient 0.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from immutables import Map

from watchkeeper.model.actor.effects import emit, sleep
from watchkeeper.model.controller.preferred import Balancing
from watchkeeper.model.controller.state_machines.context import Context
from watchkeeper.model.controller.tasks import Due, Task
from watchkeeper.model.trace.kinds import EventKind

DAY_MS = 86_400_000
"""How long KafkaScheduler.shutdown waits for its threads."""
RUN_LATE = frozenset(
    {
        Task.ASSIGNMENT_CHANGED,
        Task.STATE_CHANGED,
        Task.REASSIGNMENT,
        Task.PREFERRED,
        Task.DELETIONS,
    }
)
"""The callbacks that do not look whether the state machines are running."""


def remembered(context: Context) -> Context:
    """What is left of a reign in the memory of its controller."""
    return replace(
        context,
        epoch=0,
        fence=0,
        registrations=Map(),
        partitions=Map(),
        replicas=Map(),
        deletes=False,
    )


def late(queued: Iterable[Due]) -> tuple[Due, ...]:
    """The callbacks among queued tasks that run though the reign is over."""
    return tuple(due._replace(is_late=True) for due in queued if due.task in RUN_LATE)


async def wait_for_the_thread(epoch: int, left: Balancing | None) -> None:
    """Wait with the lock for a thread that needs it to go on."""
    if left is not None:
        await emit(EventKind.CONTROLLER_BLOCKED, epoch=epoch)
        await sleep(DAY_MS)
