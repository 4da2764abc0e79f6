"""What a trace says of brokers that elect a controller.

`leaders` reads who led each partition, with which ISR and under which controller, and
`replica_logs` where the log of each replica ended and what was committed of it.
`reassignments` reads how partitions were moved to other brokers, step by step.
"""
