"""A timeline in which each reign of a controller ends as it begins."""

from __future__ import annotations

from typing import Any

import yaml

from watchkeeper.scenarios.shipped_files import shipped_text


def endless_reigns() -> dict[str, Any]:
    """A shipped scenario, in which that lasts for a second and not for twenty."""
    whole = yaml.safe_load(shipped_text("preferred-election-of-unknown-partition"))
    [request] = [entry for entry in whole["timeline"] if "write_znode" in entry]
    crash = {"at": "7s", "crash": "controller"}
    return {**whole, "timeline": [request, crash], "settle": "2500ms", "expect": {}}
