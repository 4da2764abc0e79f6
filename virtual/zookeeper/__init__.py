"""The verified ZooKeeper in virtual time, on the network of a world.

Its modules:

  service  its servers, their addresses, and how long they take
  record   the trace of all requests, with the names of processes
"""
