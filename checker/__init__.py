"""An explicit-state model checker: all orders of operations, notifications and faults in a bound.

Read in this order:

`state_space` says what a system is (actors around one shared value) and stores its states as
rows of numbers; `search` explores them breadth first and judges liveness; `reduction` says
which interleavings may be skipped, and why that is sound. `actors` turns a program into a
graph of nodes and lists the steps of one process; `cluster` makes a system of a scenario's
plan, `user_model` of programs that users hand to `watchkeeper.explore`, `control_plane` of
brokers that elect a controller, `replication` of the replicas of a partition. `counterexample`
turns a path into steps that people read and that a replay follows. `contracts` refuses
programs that cannot be searched and names the line.
"""
