"""Judges of the control plane of 0.8: clusters whose brokers elect a controller.

controllers   who is the controller, what it writes, and whether partitions have leaders
replication   what leaders append, what is committed, and what replicas keep
brokers       what brokers know at the end, and what they have left on their disks
evidence      what these judges have seen
"""
