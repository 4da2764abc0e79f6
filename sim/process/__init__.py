"""A simulated process: what runs a program, and the tasks beside it.

`process` is a machine with one process: its inbox, its clock, and its pauses. `driver` runs
the program turn by turn and answers its effects. `tasks` runs further coroutines of the same
process, which exchange items through `queues`. `rpc` carries requests to brokers over
simulated TCP connections.
"""
