"""Problems of the environment, each reported in one sentence that ends with what to do."""

from __future__ import annotations


class EnvironmentProblem(Exception):
    """Something outside the program is missing or in the way; the command line exits with 4."""
