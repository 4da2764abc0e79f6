"""The words of the pictures of ownership: of partitions of a group, and of sections of a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """What a row is, what a member is, and how they read."""

    place: str
    member: str
    members: str
    does: str
    """What a member does with the place of a row."""
    holds: str
    """What a paused member does with it."""
    split_name: str
    split: str
    together: str
    """After the names of several members."""
    zombie_name: str
    zombie: str
    dead: str
    """After the name of a member without a live session."""
    paused: str
    never: str
    nothing: str
    breach: str
    """Any of these, in a few words."""
    has_gaps: bool
    """Whether it is worth a word that a place has no member."""
    banner: str
    """Which rows are drawn if not all are."""
    unharmed: str
    """Of rows that are not drawn."""


PARTITIONS = Wording(
    place="partition",
    member="consumer",
    members="consumers",
    does="fetches",
    holds="owns it, is paused and fetches nothing",
    split_name="split ownership",
    split="split ownership: two live members fetch",
    together="own it at the same time",
    zombie_name="zombie owner",
    zombie="zombie owner: fetches with a dead session",
    dead="fetches and has no live session",
    paused="paused, fetches nothing",
    never="no partition was ever fetched by two members at once",
    nothing="No member fetched anything.",
    breach="split or zombie",
    has_gaps=True,
    banner="first those with two owners or a zombie, then those with the longest gaps",
    unharmed="such owners",
)
SECTIONS = Wording(
    place="section",
    member="process",
    members="processes",
    does="is inside",
    holds="is inside, and paused",
    split_name="too many inside",
    split="too many inside, with live sessions",
    together="are inside at the same time",
    zombie_name="inside without a session",
    zombie="inside with a dead session",
    dead="is inside and has no live session",
    paused="paused",
    never="no section ever had too many inside",
    nothing="No process entered a section.",
    breach="overlap",
    has_gaps=False,
    banner="first those with too many inside",
    unharmed="too many inside",
)
