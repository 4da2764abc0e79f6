"""Tests of the embedded ZooKeeper and its calibration."""
