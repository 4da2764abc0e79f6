"""The way back from what members of a group fetch, and from the shares they computed."""

from __future__ import annotations

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.properties.verdicts import seconds
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.reports.why import wording
from watchkeeper.reports.why.lookup import Read, Write
from watchkeeper.reports.why.walk import Walk, Weight

FAILURES = frozenset(
    {
        EventKind.CLAIM_CONFLICT,
        EventKind.REBALANCE_FAILED,
        EventKind.REBALANCE_ABANDONED,
        EventKind.TURN_FAILED,
        EventKind.ID_IN_USE,
        EventKind.ENDED,
    }
)
"""What may come of a rebalance, but for its success."""
MOST_UNSEEN = 2
MOST_MEMBERS = 2


def walk_fetches(walk: Walk) -> None:
    """Walk back from the first partition: who fetches it, or why no member does."""
    about = walk.about
    place = about.partitions[0]
    present = _fetchers(walk, about.group, place)
    guilty = [node for node in about.nodes if node in present] or list(present)
    guilty = guilty[:MOST_MEMBERS]
    for node in guilty:
        _walk_fetcher(walk, present[node], guilty, place)
    if not guilty:
        _walk_uncovered(walk, place)


def walk_positions(walk: Walk) -> None:
    """Walk back from the first member that continued a partition elsewhere than another ended.

    Messages in between are handed on again, or passed by.
    """
    place = walk.about.partitions[0]
    ceased = None
    for event in walk.found.fetching(walk.about.group, place):
        if event.detail["does"] != "begins":
            ceased = event
        elif ceased is not None and event.detail["at"] != ceased.detail["at"]:
            _walk_continuation(walk, ceased, event, place)
            return


def _walk_continuation(walk: Walk, ceased: Event, begun: Event, place: Partition) -> None:
    node, path = begun.node, paths.offset(begun.group, place)
    text = f"{ceased.node} ceased to fetch {place} at offset {ceased.detail['at']}"
    walk.add(ceased, text, Weight.ACT)
    walk.behind(ceased.node, ceased.seq)
    text = f"{node} began to fetch {place} at offset {begun.detail['at']}"
    walk.add(begun, text, Weight.ACT)
    walk.rebalance(node, begun.seq)
    read = walk.found.last_read(node, path, begun.seq)
    if read is not None:
        walk.add(read.answered, wording.read_text(read), Weight.CAUSE)
    for write in walk.found.writes_between(path, -1, begun.seq)[-1:]:
        walk.write(write, Weight.CAUSE)


def _fetchers(walk: Walk, group: str, place: Partition) -> dict[str, Event]:
    """Member -> when it began to fetch a partition, of those that fetch it at the end."""
    found: dict[str, Event] = {}
    for event in walk.found.fetching(group, place):
        if event.seq < walk.until:
            if event.detail["does"] == "begins":
                found[event.node] = event
            else:
                found.pop(event.node, None)
    return found


# --- a member that fetches -------------------------------------------------------------


def _walk_fetcher(walk: Walk, begun: Event, guilty: list[str], place: Partition) -> None:
    node, path = begun.node, paths.owner(begun.group, place)
    writes = walk.found.writes_between(path, -1, walk.until)
    if not any(_is_claim(one, begun) and one.event.seq < begun.seq for one in writes):
        _walk_unclaimed(walk, begun, guilty, place)
        return
    loss = _loss(writes, begun)
    if loss is None:
        walk.add(begun, f"{node} claimed {place} and began to fetch it", Weight.ACT)
        walk.rebalance(node, begun.seq)
        return
    walk.add(begun, f"{node} began to fetch {place}, which it had claimed", Weight.BASIS)
    _walk_loss(walk, node, loss, place)


def _is_claim(write: Write, begun: Event) -> bool:
    """Whether a write is the claim of the session in which a member began to fetch."""
    return write.owner == begun.session and write.what == "created"


def _is_loss(write: Write, begun: Event) -> bool:
    return write.what == "deleted" or write.owner != begun.session


def _loss(writes: list[Write], begun: Event) -> Write | None:
    """The change by which a member lost its claim; None if it has claimed again since."""
    loss: Write | None = None
    claimed = False
    for write in writes:
        if _is_claim(write, begun):
            loss, claimed = None, True
        elif claimed and loss is None and _is_loss(write, begun):
            loss = write
    return loss


def _walk_unclaimed(walk: Walk, begun: Event, guilty: list[str], place: Partition) -> None:
    """A member fetches a partition that its session has not claimed."""
    node, path = begun.node, paths.owner(begun.group, place)
    all_writes = walk.found.writes.get(path, ())
    later = [one for one in all_writes if one.event.seq > begun.seq and _is_claim(one, begun)]
    then = f"; it claimed it at {seconds(later[0].event.t_us)}" if later else ""
    text = f"{node} began to fetch {place} without a claim of its own{then}"
    walk.add(begun, text, Weight.ACT)
    standing = walk.found.writes_between(path, -1, walk.until)[-1:]
    for write in standing:
        is_shown = write.by in guilty and write.by != node  # as the claim of that member
        if write.what != "deleted" and not is_shown:
            walk.write(write, Weight.CAUSE)
            walk.behind(node, begun.seq, after=write.event.seq)
    read = walk.found.last_read(node, path, begun.seq)
    if read is not None:
        text = f"{wording.read_text(read)}, and took it as its own"
        walk.add(read.answered, text, Weight.CAUSE)


def _walk_loss(walk: Walk, node: str, loss: Write, place: Partition) -> None:
    """A member has lost its claim, and goes on fetching."""
    if loss.is_end_of_session:
        walk.write(loss, Weight.ACT)
        walk.lost_session(node, loss.event, f", and still fetched {place}")
    elif loss.by == node:
        until = _until(walk, node, loss, place)
        walk.write(loss, Weight.ACT, f", and went on fetching it{until}")
        walk.rebalance(node, loss.event.seq)
    else:
        walk.write(loss, Weight.ACT, walk.unaware([node], loss))


def _until(walk: Walk, node: str, loss: Write, place: Partition) -> str:
    """When a member ceased to fetch, later than it should have."""
    for event in walk.found.fetching(walk.about.group, place):
        if event.node == node and event.seq > loss.event.seq:
            return f" until {seconds(event.t_us)}"
    return ""


# --- a partition that no member fetches ------------------------------------------------


def _walk_uncovered(walk: Walk, place: Partition) -> None:
    last = None
    for event in walk.found.fetching(walk.about.group, place):
        last = event if event.seq < walk.until else last
    if last is not None:
        walk.add(last, f"{last.node} ceased to fetch {place}", Weight.BASIS)
        _walk_end_of_fetch(walk, last)
    _walk_claim(walk, place)
    shares = sorted(_shares(walk))
    takers = [event for event in shares if _is_in(place, event)]
    for event in takers[-1:]:
        text = f"{event.node} computed its share, with {place} in it"
        walk.add(event, text, Weight.ACT)
        _walk_failure(walk, event)
    if not takers:
        latest = shares[-MOST_MEMBERS:]
        for event in latest:
            walk.add(event, f"{wording.sentence(event)}, without {place}", Weight.ACT)
            _walk_failure(walk, event)
        _walk_views(walk, latest)


def _is_in(place: Partition, assigned: Event) -> bool:
    return place.name in assigned.detail["shares"].get(place.topic, ())


def _walk_end_of_fetch(walk: Walk, ceased: Event) -> None:
    fault = walk.struck(ceased.node, ceased.seq)
    if fault is not None and fault.t_us == ceased.t_us:
        walk.add(fault, wording.fault_text(fault, ceased.node), Weight.FAULT)
    else:
        walk.rebalance(ceased.node, ceased.seq)


def _walk_claim(walk: Walk, place: Partition) -> None:
    """Add a claim that stands although no member fetches under it."""
    path = paths.owner(walk.about.group, place)
    writes = walk.found.writes_between(path, -1, walk.until)
    if writes and writes[-1].what != "deleted":
        walk.write(writes[-1], Weight.ACT, "; that claim was still there")
        owner = walk.found.holders.get(writes[-1].owner, "")
        walk.behind(owner, walk.until, after=writes[-1].event.seq)


def _walk_failure(walk: Walk, assigned: Event) -> None:
    """Add what kept a member from taking its share, or from computing another one."""
    failed = walk.found.last(
        assigned.node, walk.until, lambda event: event.kind in FAILURES, after=assigned.seq
    )
    walk.say(failed, Weight.ACT)


# --- a group that does not come to rest ------------------------------------------------


def walk_restless(walk: Walk) -> None:
    """Walk back from members that go on rebalancing: what each of them fails at."""
    for node in walk.about.nodes[:MOST_MEMBERS]:
        said = [
            event
            for event in walk.found.of_node.get(node, ())
            if event.kind in FAILURES and event.seq < walk.until
        ]
        walk.say_different(said, Weight.ACT, most=1)
        for event in said[-1:]:
            for name in event.detail.get("partitions", ())[:1]:
                place = Partition(event.topic, str(name).rpartition("/")[2])
                _walk_claim(walk, place)
        walk.behind(node, walk.until)


# --- shares ----------------------------------------------------------------------------


def walk_shares(walk: Walk) -> None:
    """Walk back from the shares that members have computed."""
    shares = _shares(walk)[:MOST_MEMBERS]
    for event in shares:
        walk.add(event, wording.sentence(event), Weight.ACT)
        _walk_failure(walk, event)
    _walk_views(walk, shares)
    if len(shares) == MOST_MEMBERS:
        _walk_difference(walk, *shares)


def _shares(walk: Walk) -> list[Event]:
    """The last share of each member."""
    found = (
        walk.found.last_of(node, walk.until, EventKind.ASSIGNED) for node in walk.about.nodes
    )
    return [event for event in found if event is not None]


def _view(walk: Walk, assigned: Event) -> dict[str, Read]:
    """The znodes that a member computed its share from, each as it read it last."""
    node = assigned.node
    begun = walk.found.last_of(node, assigned.seq, EventKind.REBALANCE_STARTED)
    since = -1 if begun is None else begun.seq
    found = {}
    for path in walk.found.reads.get(node, {}):
        read = walk.found.last_read(node, path, assigned.seq)
        if read is not None and read.answered.seq > since and not _is_of_partition(path):
            found[path] = read
    return found


def _is_of_partition(path: str) -> bool:
    """Whether a znode says what became of a partition: no share is computed from it."""
    return "/owners" in path or paths.parse_offset(path) is not None


def _walk_views(walk: Walk, shares: list[Event]) -> None:
    """Add what has changed since members read what they computed their shares from."""
    unseen: dict[int, tuple[Write, list[str]]] = {}
    for assigned in shares:
        for path, read in _view(walk, assigned).items():
            for write in walk.found.writes_between(path, read.asked.ask.seq, walk.until):
                if write.path == path or read.word == "children":
                    _, nodes = unseen.setdefault(write.event.seq, (write, []))
                    if assigned.node not in nodes:
                        nodes.append(assigned.node)
    for seq in sorted(unseen)[-MOST_UNSEEN:]:
        write, nodes = unseen[seq]
        walk.write(write, Weight.CAUSE, walk.unaware(nodes, write))
        if write.is_end_of_session:
            walk.behind(write.by, write.event.seq)


def _walk_difference(walk: Walk, one: Event, other: Event) -> None:
    """Add the lists in which two members read different names."""
    first, second = _view(walk, one), _view(walk, other)
    for path in sorted(first.keys() & second.keys()):
        answers = first[path].answer, second[path].answer
        if all(isinstance(answer, list) for answer in answers) and answers[0] != answers[1]:
            is_order = sorted(answers[0]) == sorted(answers[1])
            weight = Weight.AROUND if is_order else Weight.BASIS
            for read in (first[path], second[path]):
                walk.add(read.answered, wording.read_text(read), weight)
