"""Why a recipe violates a property, what real servers showed, and what a user can do about it.

Each text answers four questions in this order: what happens; whether the recipe could do better;
what the same strike did on a real server (`bench/recipes_live.py`); what to do.
"""

from __future__ import annotations

LIVE = "`bench/recipes_live.py` shows the same on Apache's server. "

LEFT_BEHIND = (
    "A create that arrives after its client has gone on makes a second znode of the same "
    "contender. Nothing deletes it while the session lives, and the others wait behind it. "
    "No client can rule that out, since it cannot know of a request that is still under way; "
    "a contender that finds two znodes of its own could delete one, which the recipe does not. "
    + LIVE
    + "Give work a limit in time, and stop a client whose lock behaves so: the znode goes with "
    "its session."
)
NOT_AGAIN = (
    "A member joins once. When its session ends its znode goes, kazoo's client opens a new "
    "session by itself, and the recipe does not join again. kazoo's documentation does not say "
    "so. "
    + LIVE
    + "Listen for `LOST`, and call `join` again once the client is connected: from another "
    "thread, since a listener must not wait."
)
LEASE_ENDS = (
    "A lease ends by the clock, not with a session, and the recipe does not say when: the end "
    "counts from a reading of the clock before its last requests, and is stored in whole "
    "seconds, so a lease of one second can end at once. A client that waits for a reply through "
    "a broken connection, or stands still afterwards, works beyond the end; a clock that is "
    "ahead takes a lease that others hold. kazoo's documentation asks for clocks that agree "
    "roughly, and does not name the rest; the recipe could return the end. "
    + LIVE
    + "Take leases that are much longer than the work, note the time before the call, and stop "
    "when the duration less one second has passed since."
)
LEASE_WAITS = (
    "A clock that is ahead stores an end that lies far in the future for the others, and they "
    "wait until then. A late request strikes the lock within the recipe: " + LEFT_BEHIND
)
TWICE = "The write takes effect and its reply is lost; `client.retry` sends it again. "

CAUSES: dict[tuple[str, str], str] = {
    ("Lock", "all got their turns"): LEFT_BEHIND,
    ("ReadLock and WriteLock", "all got their turns"): LEFT_BEHIND,
    ("Semaphore", "all got their turns"): LEFT_BEHIND,
    ("Election", "each has led"): LEFT_BEHIND,
    ("SetPartitioner", "each partition has one owner"): LEFT_BEHIND,
    ("NonBlockingLease", "mutual exclusion of lease, strict"): LEASE_ENDS,
    ("NonBlockingLease", "all got their turns"): LEASE_WAITS,
    ("MultiNonBlockingLease", "mutual exclusion of leases, strict"): LEASE_ENDS,
    ("MultiNonBlockingLease", "all got their turns"): LEASE_WAITS,
    ("LockingQueue", "the queue is emptied"): (
        "`get` creates an ephemeral lock for an element. The create takes effect, its reply is "
        "lost, and `get` raises an error: the queue object does not know that it has the "
        "element, and no consumer gets it while the session of this client lives. (Issue 366 of "
        "kazoo's project has another way to the same end, which is mended.) The recipe could "
        "look for a lock with its own id before it tries again. "
        + LIVE
        + "After an error of `get`, stop the client and start it again: a new session frees "
        "what the old one has locked."
    ),
    ("Party", "the party is complete"): NOT_AGAIN,
    ("ShallowParty", "the party is complete"): NOT_AGAIN,
    ("DoubleBarrier", "all leave"): (
        "`enter` and `leave` wait for a watch, without a limit in time. A connection that breaks "
        "takes the watch along; kazoo tells the recipe by an event of type `NONE`, which the "
        "recipe ignores, so it waits for ever (that kazoo drops watches with a connection is "
        "known, as issue 151 of its project). Slow messages are enough: the members that are "
        "ready delete `ready` when they leave, and a member that looks for it only then finds "
        "neither `ready` nor all the members. "
        + LIVE
        + "Run `enter` and `leave` with a limit in time, and begin again under another path."
    ),
    ("ChildrenWatch", "the watcher has seen the last state"): (
        "The reply with the children is there, the connection breaks, and the thread of the "
        "recipe goes on only then. The session listener has just noted that there is no watch; "
        "the thread notes that there is one, although the connection has taken it along. After "
        "the reconnection nothing sets it again: the watcher misses every later change, without "
        "an error. No issue of kazoo's project was found that names it. "
        + LIVE
        + "Use `DataWatch` or `TreeCache`, which read again at every "
        "reconnection, or read the children yourself when the client is connected again."
    ),
    ("Barrier", "assertions"): (
        "`wait` looks whether the znode of the barrier exists. A follower that lags has not "
        "applied its creation yet, so a process that learned of the barrier in another way "
        "passes it. ZooKeeper allows such a read; the recipe could sync first. Call "
        "`client.sync(path)` before `wait` where the barrier was made by another process."
    ),
    ("Counter", "counted"): (
        TWICE + "Its version has changed, so `Counter` takes the conflict for one with another "
        "process, reads the new value and adds once more: one addition counts twice, although "
        "no error is raised. "
        + LIVE
        + "Where a number must be right, store the additions under ids, or add in a transaction "
        "with a znode that says that it is done."
    ),
    ("Queue", "elements of queue"): (
        "`get` deletes the znode of an element and returns its data. The delete takes effect "
        "and its reply is lost; `client.retry` tries again, finds no znode, and goes on to the "
        "next element: the first one is lost, although no error is raised. "
        + LIVE
        + "kazoo's documentation says that `Queue` does not offer reliable consumption; "
        "`LockingQueue` keeps an element until it is consumed."
    ),
    ("retry", "counted"): (
        TWICE + "A create of a sequential znode makes another one, and the first has no owner "
        "who knows of it. "
        + LIVE
        + "Put an id of the attempt into the name or the data, and look for it before the "
        "second attempt, as kazoo's `Lock` does."
    ),
}
"""(recipe, property) -> the cause, and the advice."""

TOOZ_CAUSES: dict[tuple[str, str], str] = {
    ("get_lock", "all got their turns"): LEFT_BEHIND,
    ("join_group", "the group is complete"): (
        "A member joins once, by an ephemeral znode. When its session ends the znode goes; the "
        "driver does not listen to the state of its client, so the member is in no group, and "
        "no call of it says so: heartbeats go on in the new session. After a crash and a "
        "restart there is a second way: the znode of the session before is still there, "
        "`join_group` raises `MemberAlreadyExist`, and it vanishes some seconds later. A lost "
        "reply of the first attempt ends in the same error, so a member cannot tell whether the "
        "znode is its own; the driver could compare its owner with the session. "
        + LIVE
        + "Look for oneself in `get_members` from time to time and join again, and wait for a "
        "session timeout before the first join after a restart."
    ),
    ("watch_elected_as_leader", "one believes that it leads"): (
        "The leader holds a lock of kazoo. Its session ends, another member is elected and gets "
        "its callback; the first one learns nothing of it: `is_acquired` stays true, so the "
        "driver neither gives the lead up nor campaigns again. Both believe that they lead, "
        "for ever. " + LIVE + "Ask `get_leader` before work that only a leader may do, and call "
        "`stand_down_group_leader` when it names another one."
    ),
}
"""What of tooz, and the property -> the cause, and the advice."""
