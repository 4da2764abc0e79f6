"""Ordinary threaded code that uses kazoo, unmodified, in virtual time.

threads    threads under one clock, every switch decided; knows nothing of ZooKeeper
network    sockets, and the links between processes
zookeeper  the verified ZooKeeper on that network
modules    preemption between lines, and modules of a process's own
"""
