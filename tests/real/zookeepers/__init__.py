"""Tests of the choice between Apache's server and the one in Python."""
