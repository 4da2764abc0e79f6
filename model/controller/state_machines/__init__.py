"""The states of partitions and replicas, and what it takes to change them.

variants    the two versions, 0.8.2.2 as shipped and `hardened`, as one table; read this first
states      the states of partitions and replicas
channel     the channels to brokers, and the batches that go out over them
context     what a controller knows of the cluster: a frozen value
selectors   who leads next: pure functions
writes      a write of a state as a value, before it is made
reign       a controller at work during one turn: its reads, its writes and its batch
partitions  the transitions of partitions
replicas    the transitions of replicas
"""
