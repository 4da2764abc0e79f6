"""Each step that a group and its coordinators can take next.

The controller elects a broker of the ISR. A broker learns of it at any moment later; until then
it believes what it believed. A follower fetches all that its leader has, and learns the high
watermark; the leader learns how far the follower is. A coordinator loads one record at a time, as
with a small `offsets.load.buffer.size`.

A member sends a commit or a fetch to any broker; one that does not lead refuses it, which changes
nothing. Old requests of controllers, old checkpoints and lost disks are in the search of
replicas (`watchkeeper.checker.replication`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchkeeper.checker.offsets.state import (
    NOT,
    NOTHING,
    TOMBSTONE,
    Broker,
    Cell,
    Commit,
    Entry,
    Fault,
    Fetch,
    Group,
    Record,
    Step,
    noted,
)
from watchkeeper.model.properties.group_offsets import FOUND, NOT_MISSING, STAYS_EXPIRED
from watchkeeper.model.replication.truncation import HIGH_WATERMARK
from watchkeeper.model.replication.variants import (
    Expiry,
    OffsetFetches,
    OffsetsCache,
    ReplicationVariant,
)

NAMES = "ab"
BOTH = frozenset({0, 1})


class Bounds(NamedTuple):
    """The size of a search."""

    members: int = 2
    commits: int = 2
    epochs: int = 3
    """The number of elections, with the first one."""
    faults: frozenset[Fault] = frozenset()
    """The faults that may strike, once each."""

    def __str__(self) -> str:
        counts = {"member": self.members, "commit": self.commits, "epoch": self.epochs}
        return ", ".join(f"{number} {one}{'s' * (number != 1)}" for one, number in counts.items())


def initial(bounds: Bounds) -> Group:
    """Return a group before its first commit, with a coordinator that has loaded."""
    first = Broker(leads=0, isr=BOTH, is_loaded=True, seen=0)
    return Group(
        (first, Broker(follows=0)),
        Cell(0, 0, BOTH),
        (None,) * bounds.members,
        left=bounds.faults,
    )


class Steps:
    """The steps of a group in a version of the brokers, within bounds."""

    def __init__(self, variant: ReplicationVariant, bounds: Bounds) -> None:
        self.variant = variant
        self.bounds = bounds
        self._follows_log = variant.offsets_cache is OffsetsCache.FOLLOWS_LOG

    def of(self, group: Group) -> Iterator[Step]:
        """Yield each step that is possible in a state."""
        if group.violation:
            return
        yield from self._controller(group)
        yield from self._faults(group)
        for number, broker in enumerate(group.brokers):
            if not broker.is_alive:
                back = group.with_broker(number, broker._replace(is_alive=True))
                yield Step(f"broker {NAMES[number]} starts again", back)
                continue
            yield from self._learns(group, number)
            yield from self._fetches(group, number)
            if broker.leads != NOT:
                yield from self._leader(group, number)
        for member, waits in enumerate(group.members):
            if waits is None:
                yield from self._requests(group, member)
            elif isinstance(waits, Commit):
                yield from self._acknowledges(group, member, waits)
            else:
                yield from self._answers(group, member, waits)
        if group.late:
            yield from self._arrives_late(group)

    # --- who leads ---------------------------------------------------------------------

    def _controller(self, group: Group) -> Iterator[Step]:
        """Elect the other broker, once the leader is dead."""
        if not group.brokers[group.cell.leader].is_alive:
            yield from self._elects(group)

    def _moves(self, group: Group) -> Iterator[Step]:
        """Elect the other broker; the leader learns of it at once, and stays in the ISR."""
        old = group.cell.leader
        for step in self._elects(group) if group.cell.isr == BOTH else ():
            cell = step.after.cell._replace(isr=BOTH)
            after = _without_waiting(step.after, old)._replace(cell=cell)
            after = after.with_broker(old, _follower(group.brokers[old]))
            yield Step(f"{step.text}, to which {NAMES[old]} hands over", after)

    def _elects(self, group: Group) -> Iterator[Step]:
        other = 1 - group.cell.leader
        if other in group.cell.isr and group.cell.epoch + 1 < self.bounds.epochs:
            cell = Cell(group.cell.epoch + 1, other, frozenset({other}))
            text = f"the controller elects {NAMES[other]} (epoch {cell.epoch})"
            yield Step(text, group._replace(cell=cell))

    def _learns(self, group: Group, number: int) -> Iterator[Step]:
        """Learn who leads: begin to lead, or to follow."""
        broker, cell = group.brokers[number], group.cell
        if max(broker.leads, broker.follows) >= cell.epoch:
            return
        if cell.leader == number:
            after = broker._replace(
                leads=cell.epoch,
                follows=NOT,
                isr=cell.isr,
                seen=NOT,
                start=broker.end,
                cache=None,
                read=0,
                is_loaded=False,
            )
            text = f"{NAMES[number]} leads in epoch {cell.epoch}, and begins to load"
            yield Step(text, group.with_broker(number, _raised(after, number)))
            return
        leader = group.brokers[cell.leader]
        if leader.leads != cell.epoch:
            return
        cut = _common(broker.log, leader.log)
        if self.variant.truncation == HIGH_WATERMARK:
            cut = broker.high_watermark
        kept = _follower(broker)._replace(
            log=broker.log[:cut],
            high_watermark=min(broker.high_watermark, cut),
            follows=cell.epoch,
        )
        text = f"{NAMES[number]} follows in epoch {cell.epoch}"
        lost = f", and cuts {broker.end - cut} of its log" if cut < broker.end else ""
        yield Step(text + lost, _without_waiting(group, number).with_broker(number, kept))

    def _fetches(self, group: Group, number: int) -> Iterator[Step]:
        """Follow: send a fetch, which says how far this broker is; take the response later."""
        broker, other = group.brokers[number], 1 - number
        leader = group.brokers[other]
        if broker.follows == NOT or not leader.is_alive or leader.leads != broker.follows:
            return
        if not broker.has_asked:
            yield self._asks(group, number)
            return
        mark = min(leader.high_watermark, leader.end)
        fetched = broker._replace(log=leader.log, high_watermark=mark, has_asked=False)
        text = f"{NAMES[number]} has fetched up to {leader.end}, with the high watermark {mark}"
        yield Step(text, group.with_broker(number, fetched))

    def _asks(self, group: Group, number: int) -> Step:
        """The leader knows from a fetch how far the follower is, and that it follows."""
        broker, other = group.brokers[number], 1 - number
        leader = group.brokers[other]
        members = tuple(
            waits._replace(is_confirmed=True)
            if isinstance(waits, Fetch) and waits.broker == other and number in leader.isr
            else waits
            for waits in group.members
        )
        after = group._replace(members=members)
        after = after.with_broker(other, _raised(leader._replace(seen=broker.end), other))
        after = after.with_broker(number, broker._replace(has_asked=True))
        return Step(f"{NAMES[number]} fetches from offset {broker.end} on", after)

    def _leader(self, group: Group, number: int) -> Iterator[Step]:
        broker = group.brokers[number]
        if not self._follows_log and not broker.is_loaded:
            yield self._loads(group, number)
        if group.cell[:2] == (broker.leads, number):
            yield from self._isr_changes(group, number)
        if group.horizon:
            yield from self._expires(group, number)

    def _isr_changes(self, group: Group, number: int) -> Iterator[Step]:
        broker, other = group.brokers[number], 1 - number
        follower = group.brokers[other]
        if other in broker.isr:
            if follower.follows != broker.leads or broker.seen < broker.end:
                yield self._with_isr(group, number, frozenset({number}), "drops")
            return
        least = max(broker.high_watermark, broker.start if self._admits_late else 0)
        if follower.follows == broker.leads and broker.seen >= least:
            yield self._with_isr(group, number, BOTH, "admits")

    @property
    def _admits_late(self) -> bool:
        return self.variant.truncation.admits_after_own_epoch

    def _with_isr(self, group: Group, number: int, isr: frozenset[int], word: str) -> Step:
        broker = _raised(group.brokers[number]._replace(isr=isr), number)
        after = group.with_broker(number, broker)._replace(cell=group.cell._replace(isr=isr))
        return Step(f"{NAMES[number]} {word} {NAMES[1 - number]} in the ISR", after)

    # --- what a coordinator knows ------------------------------------------------------

    def _loads(self, group: Group, number: int) -> Step:
        """Read one more record, as shipped; at the high watermark it has loaded."""
        broker = group.brokers[number]
        if broker.read >= broker.high_watermark:
            after = broker._replace(is_loaded=True)
            return Step(f"{NAMES[number]} has loaded", group.with_broker(number, after))
        cache = noted(broker.cache, _entry(broker, broker.read))
        after = broker._replace(cache=cache, read=broker.read + 1)
        text = f"{NAMES[number]} loads offset {broker.read}"
        return Step(text, group.with_broker(number, after))

    def _known(self, broker: Broker) -> Entry | None:
        """Return what a coordinator knows: its cache, or what the log has when it looks."""
        if not self._follows_log:
            return broker.cache
        found: Entry | None = None
        for at in range(broker.high_watermark):
            found = noted(found, _entry(broker, at))
        return found

    def _has_loaded(self, broker: Broker) -> bool:
        if self._follows_log:
            return broker.high_watermark >= broker.start
        return broker.is_loaded

    def _expires(self, group: Group, number: int) -> Iterator[Step]:
        """Append the tombstone of a commit that is old."""
        broker = group.brokers[number]
        known = self._known(broker)
        if known is None or not known.is_old:
            return
        has_more = not self._has_loaded(broker) or broker.high_watermark < broker.end
        if has_more and self.variant.expiry is Expiry.LATEST:
            return  # a newer record of the key may be in the rest of the log
        log = (*broker.log, Record(broker.leads, TOMBSTONE))
        cache = noted(broker.cache, Entry(TOMBSTONE, broker.end))
        after = _raised(broker._replace(log=log, cache=cache), number)
        text = f"{NAMES[number]} appends a tombstone for commit {known.number}"
        yield Step(text, group.with_broker(number, after))

    # --- members -----------------------------------------------------------------------

    def _requests(self, group: Group, member: int) -> Iterator[Step]:
        name = f"member {member + 1}"
        for number, broker in enumerate(group.brokers):
            if not broker.is_alive or broker.leads == NOT:
                continue
            if group.sent < self.bounds.commits:
                commit = Commit(group.sent + 1, number, broker.end, broker.leads)
                after = _appended(group._replace(sent=commit.number), number, commit.number)
                text = f"{name} sends commit {commit.number} to {NAMES[number]}, which appends it"
                yield Step(text, after.with_member(member, commit))
                if Fault.LATE in group.left and not group.late:
                    late = group._replace(
                        sent=commit.number,
                        late=commit.number,
                        left=group.left - {Fault.LATE},
                    )
                    text = f"{name} sends commit {commit.number}, and gives up before it arrives"
                    yield Step(text, late)
            if group.acked:
                fetch = Fetch(
                    number, group.acked, group.expired, self._needs_none(broker, number)
                )
                text = f"{name} sends a fetch to {NAMES[number]}"
                yield Step(text, group.with_member(member, fetch))

    def _needs_none(self, broker: Broker, number: int) -> bool:
        """Whether a broker answers a fetch without a word of another one."""
        at_once = self.variant.offset_fetches is OffsetFetches.AT_ONCE
        return at_once or broker.isr == {number}

    def _acknowledges(self, group: Group, member: int, commit: Commit) -> Iterator[Step]:
        """Answer a commit that the ISR has; the cache has it from then on."""
        broker = group.brokers[commit.broker]
        if broker.leads != commit.epoch or broker.high_watermark <= commit.at:
            return
        cache = noted(broker.cache, _entry(broker, commit.at))
        done = group.with_broker(commit.broker, broker._replace(cache=cache))
        done = done.with_member(member, None)
        acked = (*group.acked, (commit.number, group.sent))
        text = f"{NAMES[commit.broker]} acknowledges commit {commit.number}"
        yield Step(text, done._replace(acked=acked))
        if Fault.REPLY in group.left:
            lost = done._replace(left=group.left - {Fault.REPLY})
            yield Step(f"{text}, and the reply is lost", lost)

    def _answers(self, group: Group, member: int, fetch: Fetch) -> Iterator[Step]:
        broker, name = group.brokers[fetch.broker], f"member {member + 1}"
        done = group.with_member(member, None)
        if broker.leads == NOT or not broker.is_alive:
            yield Step(f"{name} is refused its fetch", done)
            return
        if not fetch.is_confirmed or not self._has_loaded(broker):
            return
        known = self._known(broker)
        given = NOTHING if known is None else known.number
        if known is not None and known.is_old and self.variant.expiry is Expiry.LATEST:
            given = NOTHING
        last = max(number for number, _ in fetch.acked)
        what = f"commit {given}" if given else "no offset"
        after = done._replace(violation=_violated(group, fetch, given, last))
        if not given and last <= group.horizon:
            after = after._replace(expired=max(group.expired, len(fetch.acked)))
        yield Step(f"{NAMES[fetch.broker]} answers {name} with {what}", after)

    def _arrives_late(self, group: Group) -> Iterator[Step]:
        for number, broker in enumerate(group.brokers):
            if broker.is_alive and broker.leads != NOT:
                after = _appended(group, number, group.late)._replace(late=0)
                yield Step(f"commit {group.late} arrives late at {NAMES[number]}", after)

    # --- faults ------------------------------------------------------------------------

    def _faults(self, group: Group) -> Iterator[Step]:
        """Let a fault strike that is left; the faults of single requests are with these."""
        leader = group.cell.leader
        if Fault.CRASH in group.left and group.brokers[leader].leads != NOT:
            rest = group._replace(left=group.left - {Fault.CRASH})
            dead = _follower(group.brokers[leader])._replace(is_alive=False)
            after = _without_waiting(rest, leader).with_broker(leader, dead)
            yield Step(f"coordinator {NAMES[leader]} crashes", after)
        if Fault.DEPOSED in group.left:
            rest = group._replace(left=group.left - {Fault.DEPOSED})
            for step in self._elects(rest):
                yield Step(f"{step.text}, and {NAMES[leader]} does not know", step.after)
        if Fault.EXPIRY in group.left and group.sent:
            after = _aged(group)._replace(left=group.left - {Fault.EXPIRY})
            yield Step(f"the retention of commits up to {group.sent} passes", after)
        if Fault.MOVED in group.left and group.brokers[leader].is_alive:
            rest = group._replace(left=group.left - {Fault.MOVED})
            yield from self._moves(rest)
        if Fault.MEMBER in group.left:
            for member, waits in enumerate(group.members):
                if isinstance(waits, Commit):
                    rest = group._replace(left=group.left - {Fault.MEMBER})
                    text = f"member {member + 1} crashes, and starts again"
                    yield Step(text, rest.with_member(member, None))


# --- brokers ---------------------------------------------------------------------------


def _raised(broker: Broker, number: int) -> Broker:
    """Return a leader whose high watermark is as high as what the ISR has allows."""
    end = broker.end if broker.isr == {number} else min(broker.end, broker.seen)
    return broker._replace(high_watermark=max(broker.high_watermark, end))


def _appended(group: Group, number: int, commit: int) -> Group:
    broker = group.brokers[number]
    log = (*broker.log, Record(broker.leads, commit))
    return group.with_broker(number, _raised(broker._replace(log=log), number))


def _entry(broker: Broker, at: int) -> Entry:
    """Return what the log of a broker has at an offset."""
    record = broker.log[at]
    return Entry(record.number, at, record.is_old)


def _aged(group: Group) -> Group:
    """Return the state once every commit so far is older than the retention."""
    first, second = (
        broker._replace(
            log=tuple(record._replace(is_old=True) for record in broker.log),
            cache=None if broker.cache is None else broker.cache._replace(is_old=True),
        )
        for broker in group.brokers
    )
    return group._replace(brokers=(first, second), horizon=group.sent)


def _follower(broker: Broker) -> Broker:
    """Return a broker that coordinates nothing any more: its log stays."""
    return Broker(broker.log, broker.high_watermark)


def _without_waiting(group: Group, number: int) -> Group:
    """Return the state without the commits that wait for a broker; its members give up."""
    members = tuple(
        None if isinstance(waits, Commit) and waits.broker == number else waits
        for waits in group.members
    )
    return group._replace(members=members)


def _common(log: tuple[Record, ...], other: tuple[Record, ...]) -> int:
    """Return how many records two logs have in common."""
    shared = min(len(log), len(other))
    return next((at for at in range(shared) if log[at] != other[at]), shared)


def _violated(group: Group, fetch: Fetch, given: int, last: int) -> str:
    """Return the property that an answer violates, as the judge of runs sees it."""
    if not given:
        return "" if last <= group.horizon else NOT_MISSING.name
    if given in [number for number, _ in group.acked[: fetch.expired]]:
        return STAYS_EXPIRED.name
    sent_by_then = dict(group.acked)
    is_possible = given >= last or sent_by_then.get(given, last) >= last
    return "" if is_possible else FOUND.name
