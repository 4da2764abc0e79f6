"""Slow tests: their mark, and whether a run has them."""

from __future__ import annotations

import pytest

SLOW = "slow"


def runs_slow_tests(config: pytest.Config) -> bool:
    """Whether slow tests run, alone (`-m slow`) or with all others (`--slow`)."""
    return bool(config.getoption("--slow")) or SLOW in config.getoption("-m")
