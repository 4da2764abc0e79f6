"""What a picture of a counterexample is made of: who fetched what, who claimed it, which notes.

Everything is counted in steps. What begins at a step begins with it, what ends at a step
was true until then; what has no end was still true after the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from model.ownership import STRICT
from model.story import Stand, Story, StoryStep
from reports.labels import natural

NOT_CONSUMERS = "broker/"
ADMINISTRATOR = "administrator"
LOST_BY = ("is disconnected", "is killed", "loses ", "leaves a request behind")
"""How a deed is called that takes with it what was on its way to a process."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Something of one node that was so from a step until another."""

    node: str
    what: str
    begins: int
    ends: int | None
    said: str = ""


def group_of(node: str) -> str:
    """The group of a member, by its name."""
    return node.rpartition("/")[0]


def consumers(story: Story) -> list[str]:
    """Those of the processes that may fetch."""
    names = (
        name
        for name in story.nodes
        if not name.startswith(NOT_CONSUMERS) and name != ADMINISTRATOR
    )
    return sorted(names, key=natural)


def concerned(story: Story) -> list[str]:
    """Consumers, and whoever else does something or is not left as it was."""
    mine = set(consumers(story))
    doers = {step.deed.node for step in story.whole}
    return [
        name
        for name in story.nodes
        if name in mine or name in doers or len({one[name] for one in standing(story)}) > 1
    ]


def standing(story: Story) -> list[Mapping[str, Stand]]:
    """How all stand before the first step, and after each."""
    return [story.first, *(step.stands for step in story.whole)]


# --- stretches -------------------------------------------------------------------------


def stretches(states: list[Mapping[tuple[str, str], str]]) -> list[Stretch]:
    """What was so, of (node, what) -> in which way; the first state is that of the beginning."""
    found: list[Stretch] = []
    since: dict[tuple[str, str], tuple[int, str]] = {}
    for number, now in enumerate(states):
        for key, (begun, said) in list(since.items()):
            if now.get(key) != said:
                found.append(Stretch(*key, begun, number, said))
                del since[key]
        for key, said in now.items():
            since.setdefault(key, (number, said))
    found += [Stretch(*key, begun, None, said) for key, (begun, said) in since.items()]
    return sorted(found, key=lambda one: (one.what, one.begins, natural(one.node)))


def fetched(story: Story) -> list[Stretch]:
    """Who fetched which partition; said is whether its session was alive."""
    return stretches([_fetching(now) for now in standing(story)])


def _fetching(now: Mapping[str, Stand]) -> Mapping[tuple[str, str], str]:
    return {
        (node, partition): "alive" if stand.session.startswith("alive") else "dead"
        for node, stand in now.items()
        for partition in stand.fetching
    }


def tracks(bars: list[Stretch]) -> list[int]:
    """A track for each bar of one column, so that those of one time stand side by side.

    Bars come as they begin; a node that goes on in another way stays on its track.
    """
    last: list[Stretch] = []
    found = []
    for bar in bars:
        free = [
            at for at, one in enumerate(last) if one.ends is not None and one.ends <= bar.begins
        ]
        same = [at for at in free if last[at].node == bar.node and last[at].ends == bar.begins]
        track = (same or free or [len(last)])[0]
        last[track : track + 1] = [bar]
        found.append(track)
    return found


def claimed(story: Story) -> list[Stretch]:
    """Whose claim stood on which partition."""
    owned = [story.first_owners, *(step.owners for step in story.whole)]
    return stretches([{(owner, at): "" for at, owner in one.items()} for one in owned])


def shared(story: Story) -> list[Stretch]:
    """Where several members of one group fetched one partition; node is the group.

    Where sessions have to be alive for that to be wrong, those that are not do not count.
    """
    counts_all = story.violates == STRICT.name
    states: list[Mapping[tuple[str, str], str]] = []
    for now in standing(story):
        seen: dict[tuple[str, str], int] = {}
        for (node, partition), said in _fetching(now).items():
            if counts_all or said == "alive":
                key = (group_of(node), partition)
                seen[key] = seen.get(key, 0) + 1
        states.append({key: "" for key, number in seen.items() if number > 1})
    return stretches(states)


# --- notes -----------------------------------------------------------------------------


def notes(story: Story) -> list[Stretch]:
    """What the service sent to whom: heard, lost or, where it has no end, still on its way."""
    found: list[Stretch] = []
    for node in story.nodes:
        found += _notes_to(story, node)
    return sorted(found, key=lambda one: (one.begins, natural(one.node), one.what))


def _notes_to(story: Story, node: str) -> Iterator[Stretch]:
    under_way = [(what, 0) for what in _events(story.first[node])]
    for step in story.whole:
        left = _events(step.stands[node])
        kept: list[tuple[str, int]] = []
        for what, begun in under_way:
            if what in left:
                left.remove(what)
                kept.append((what, begun))
            else:
                yield Stretch(node, what, begun, step.number, _end(step, node))
        under_way = kept + [(what, step.number) for what in left]
    for what, begun in under_way:
        yield Stretch(node, what, begun, None, "on its way")


def _events(stand: Stand) -> list[str]:
    """What it was sent of znodes, and has not taken yet."""
    return [one for one in stand.notes if one.startswith("/")]


def _end(step: StoryStep, node: str) -> str:
    does = step.deed.does.rpartition(", then ")[2]
    is_lost = step.deed.node == node and does.startswith(LOST_BY)
    return "lost" if is_lost else "heard"


# --- what has changed ------------------------------------------------------------------


def changes(
    stands: Mapping[str, Stand], owners: Mapping[str, str], after: StoryStep
) -> list[str]:
    """What a step has changed of who fetches and who owns; the others say how it was before."""
    said = []
    for node, now in after.stands.items():
        was = stands[node].fetching
        begun = [one for one in now.fetching if one not in was]
        ended = [one for one in was if one not in now.fetching]
        said += [f"{node} fetches {', '.join(begun)}"] if begun else []
        said += [f"{node} stops {', '.join(ended)}"] if ended else []
    for at in sorted({*owners, *after.owners}, key=natural):
        now_of, was_of = after.owners.get(at), owners.get(at)
        if now_of != was_of:
            said.append(f"{at}: " + (f"{now_of} claims" if now_of else "nobody's any more"))
    return said
