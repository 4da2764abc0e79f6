"""Why a recipe violates a property, and what a user can do about it."""

from __future__ import annotations

LEFT_BEHIND = (
    "A create that arrives after its client has gone on makes a second znode of the same "
    "contender, which nothing deletes while the session lives, and the others wait "
    "behind it. No "
    "client can rule that out, since it cannot know of a request that is still under way; a "
    "contender that finds two znodes of its own could delete one. Give work a limit in "
    "time, and "
    "stop a client whose lock behaves so: the znode goes with its session."
)
NOT_AGAIN = (
    "A member joins once. When its session ends, its znode goes, and kazoo's client "
    "opens a new "
    "session by itself; the recipe does not join again. kazoo's documentation does not say so. "
    "Listen for `LOST`, and call `join` again once the client is connected: from another "
    "thread, "
    "since a listener must not wait."
)
GATE = (
    "The members that are ready delete `ready` when they leave. A member that was away "
    "meanwhile, "
    "or that comes back after one of the others has left, finds neither `ready` nor all the "
    "members, and waits for a znode that nothing will create; `enter` has no timeout. "
    "A member "
    "whose `leave` waits for the znode of a member that does not leave waits as long as "
    "that one. Nothing "
    "short of a limit in time helps: run `enter` and `leave` with one, and begin again under "
    "another path."
)
TWICE = "The write takes effect and its reply is lost; `client.retry` sends it again. "

CAUSES: dict[tuple[str, str], str] = {
    ("Lock", "all got their turns"): LEFT_BEHIND,
    ("ReadLock and WriteLock", "all got their turns"): LEFT_BEHIND,
    ("Semaphore", "all got their turns"): LEFT_BEHIND,
    ("Election", "each has led"): LEFT_BEHIND,
    ("LockingQueue", "elements of queue"): (
        TWICE + "`put` is a create of a sequential znode that is tried again in one transaction, "
        "so an element may be there twice; `consume` may be told that it has failed when "
        "it has "
        "not. Give elements an id, and let their work be idempotent."
    ),
    ("Party", "the party is complete"): NOT_AGAIN,
    ("ShallowParty", "the party is complete"): NOT_AGAIN,
    ("DoubleBarrier", "all leave"): GATE,
    ("Barrier", "assertions"): (
        "`wait` looks whether the znode of the barrier exists. A follower that lags has not "
        "applied its creation yet, so a process that learned of the barrier in another "
        "way passes "
        "it. Call `client.sync(path)` before `wait` where the barrier was made by "
        "another process."
    ),
    ("Counter", "counted"): (
        TWICE + "Its version has changed, so `Counter` takes the conflict for one with another "
        "process, reads the new value and adds once more: one addition counts twice, "
        "although no "
        "error is raised. `bench/recipes_live.py` shows it on Apache's server. Where a "
        "number must be "
        "right, store the additions under ids, or add in a transaction with a znode that says "
        "that it is done."
    ),
    ("Queue", "elements of queue"): (
        "`get` deletes the znode of an element and returns its data. The delete takes "
        "effect and "
        "its reply is lost; `client.retry` tries again, finds no znode, and goes on to "
        "the next "
        "element: the first one is lost, although no error is raised. "
        "`bench/recipes_live.py` shows it on Apache's server. kazoo's documentation says "
        "of `Queue` that it is not "
        "for uses that need a guarantee; `LockingQueue` keeps an element until it is consumed."
    ),
    ("retry", "counted"): (
        TWICE
        + "A create of a sequential znode makes another one, and the first has no owner who "
        "knows of it. `bench/recipes_live.py` shows it on Apache's server. Put an id of the "
        "attempt into the name or the data, and look for it before the second attempt, "
        "as kazoo's "
        "`Lock` does."
    ),
    ("transaction", "counted"): (
        TWICE + "A transaction is done twice. Let it contain a create under a name of its own, "
        "which fails the second time."
    ),
}
"""(recipe, property) -> the cause, and the advice."""
