"""What stands above every picture: of which run it is."""

from __future__ import annotations

from model.trace import Header

WORLDS = {"sim": "simulated", "live": "live", "explore": "explored"}


def title(header: Header) -> str:
    """The scenario, which is what a picture is of."""
    return header.scenario


def subtitle(header: Header) -> str:
    """The variant, the world and the seed, and whether the run was cut short."""
    world = WORLDS.get(header.world, header.world)
    cut = " · interrupted" if header.partial else ""
    return f"{header.variant} · {world} · seed {header.seed}{cut}"
