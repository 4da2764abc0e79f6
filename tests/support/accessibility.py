"""What axe-core complains of in a page that a browser shows."""

from __future__ import annotations

import json
from importlib.resources import files

from bench.support.devtools import Tab

AXE = """
axe.run().then((found) => JSON.stringify(found.violations.map(
  (one) => one.id + ": " + one.nodes.map((node) => node.html.slice(0, 120)).join(" | "))))
"""


def complaints(tab: Tab) -> list[str]:
    """The rules that the page breaks, each with the elements that break it."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    tab.run(f"{axe};0")
    found: list[str] = json.loads(tab.run(AXE))
    return found
