"""The worlds that run the code of live members, behind one door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.live_zookeeper import lived_to_a_verdict
from tests.support.virtual_members import ran_in_virtual_time

MEMBER_WORLDS = ["virtual", pytest.param("live", marks=pytest.mark.slow)]


def ran(scenario: str | Mapping[str, Any], world: str) -> Any:
    """A run of a scenario: by processes on a real ZooKeeper, or in virtual time."""
    return lived_to_a_verdict(scenario) if world == "live" else ran_in_virtual_time(scenario)
