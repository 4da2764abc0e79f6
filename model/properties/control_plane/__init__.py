"""Judges of the control plane of 0.8: clusters whose brokers elect a controller.

controllers   who is the controller, what it writes, and whether partitions have leaders
replication   what leaders append, what is committed, and what replicas keep
brokers       what brokers know at the end, and what they have left on their disks
leaders       who leads at rest: preferred replicas, and no dead brokers
rests         the judge that looks at each rest
marks         whether what brokers know to be committed outlives their processes
halts         brokers that end themselves
isrs          whether brokers know the ISRs that leaders have changed
updates       whether a write replaces what its writer does not know
spread        how tools spread the partitions that they add
costs         what controllers do, against what has changed
requests      what controllers send to brokers, and what these carry out
judges        all of these judges
"""
