"""The properties of clusters with a controller, a second time.

plans         the facts of plans: clusters, their processes, and the planned assignments
registry      the registry of a cluster as it was at each event: states, assignments, settings
logs          the logs of replicas, what leaders have committed, and what was confirmed
controllers   the properties of controllers
updates       whether a write replaces what its writer does not know
spread        how tools spread the partitions that they add
costs         what controllers do, against what has changed
leaders       who leads at rest
requests      what controllers send, and what brokers carry out
replication   the properties of replicas
brokers       the properties of what brokers know and hold
marks         whether what brokers know to be committed outlives their processes
halts         brokers that end themselves
isrs          whether brokers know the ISRs that leaders have changed
judged        all of them, for the runs that they are about
"""
