"""Tests of the faults of live runs."""
