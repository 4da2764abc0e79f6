"""Experiments on disks, memory and logs."""
