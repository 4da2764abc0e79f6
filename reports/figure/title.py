"""The title of a picture: the run it shows."""

from __future__ import annotations

from watchkeeper.model.trace.trace import Header, mix_in_words

WORLDS = {"sim": "simulated", "live": "live", "explore": "explored", "virtual": "in virtual time"}


def title(header: Header) -> str:
    """The scenario, which is the subject of a picture."""
    return header.scenario


def subtitle(header: Header) -> str:
    """The variants, the world and the seed, and whether the run was cut short."""
    variants = mix_in_words(header.mix, header.variant)
    world = WORLDS.get(header.world, header.world)
    cut = " · interrupted" if header.partial else ""
    return f"{variants} · {world} · seed {header.seed}{cut}"
