"""What can be done to an ensemble while it runs: faults as verbs, and what they struck.

control   the verbs, and the faults that they begin
observer  counts what delays and lags strike
"""

from __future__ import annotations

from watchkeeper.model.ensemble.control.control import FAULTS, QUESTIONS, Control, ControlError

__all__ = ["FAULTS", "QUESTIONS", "Control", "ControlError"]
