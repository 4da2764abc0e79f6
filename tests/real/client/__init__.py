"""Tests of the kazoo client, its connection and the audit."""
