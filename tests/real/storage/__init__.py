"""Tests of files, the loss of a host and metrics."""
