"""How long a test waits for what has to happen.

The limit exists only so that a test that hangs comes to an end. No machine that runs the
suite, however busy, may need this long for one step.
"""

from __future__ import annotations

PATIENCE_S = 180.0
