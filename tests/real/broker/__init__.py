"""Tests of the live broker."""
