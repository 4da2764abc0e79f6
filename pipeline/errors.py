"""The error of a job, in one sentence that ends with what to do."""

from __future__ import annotations


class PipelineProblem(Exception):
    """Something outside the program is missing or in the way; the command line exits with 4.

    Finished work stays intact.
    """
