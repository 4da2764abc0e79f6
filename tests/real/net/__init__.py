"""Tests of frames and RPC between clients and brokers."""
