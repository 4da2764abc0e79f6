"""The bound of a search, as scenarios state it."""

from model.bounds import FAULTS, KINDS, Bounds

__all__ = ["FAULTS", "KINDS", "Bounds"]
