"""The one setting for how much is drawn: `WATCHKEEPER_SEEDS`, 10 unless it is set.

A loop over random runs takes so many seeds; a test that draws examples takes a multiple. A
soak over night sets it higher: `WATCHKEEPER_SEEDS=1000 pytest tests/sim/test_chaos.py`.
"""

from __future__ import annotations

import os

SEEDS = int(os.environ.get("WATCHKEEPER_SEEDS", "10"))
"""The number of seeds of a loop over random runs."""
