"""The canary of a sweep: a planted mistake, in a run in which it is known to be caught."""

from __future__ import annotations

from model.planting import scenario_of
from model.zoo import PLANTS
from pipeline.sweeps.conduct import Canary
from pipeline.sweeps.grid import Cell
from scenarios import from_text

PLANT = PLANTS["stale-memory"]
"""After an expiry it goes on with the claims of the session before."""
TIMELINE = "timeline: [{at: 5s, expire: group/0}]\nsettle: 5s\n"
SEED = 1


def canary() -> Canary:
    """The canary."""
    text = "\n".join((*scenario_of(PLANT), TIMELINE))
    named = text.replace(f"name: {PLANT.name}", "name: canary", 1)
    plan = from_text("canary.yaml", named).plan()
    return Canary(Cell(-1, (), plan, None), SEED, PLANT.caught_by.name)
