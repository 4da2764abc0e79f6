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
TWICE = "The write takes effect and its reply is lost; `client.retry` sends it again. "

CAUSES: dict[tuple[str, str], str] = {
    ("Lock", "all got their turns"): LEFT_BEHIND,
    ("ReadLock and WriteLock", "all got their turns"): LEFT_BEHIND,
    ("Semaphore", "all got their turns"): LEFT_BEHIND,
    ("Election", "each has led"): LEFT_BEHIND,
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
