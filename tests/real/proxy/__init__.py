"""Tests of the fault-injecting proxy."""
