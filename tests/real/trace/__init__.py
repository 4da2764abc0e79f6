"""Tests of the traces of live runs."""
