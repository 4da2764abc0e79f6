"""Live members inside an application: `watchkeeper.Consumer`, `Broker`, `Producer` and others.

`member` runs any program over a real ZooKeeper in a thread of its own: start, ready, close. Read
it first. `consumer` is a member of a group whose partitions are handed to the application by
`handover`, through the thread of `callbacks`; `broker` registers a broker, and `broker_server` is
the process of one. `task_member` adds tasks beside the program, on which the clients of messages
are built: `connector` with its `reader`, `producer`, `simple_consumer` and `mirror`.
`result_reader` stores results together with offsets. `validation` checks the
arguments of an application, `counters` logs and counts the events of a member.
"""
