"""A group that keeps its offsets in Kafka, searched in every interleaving.

Reading order:

    group     the members, the brokers that coordinate in turn, and each step that can come next
    search    the nearest violation of each property of offsets

What a coordinator knows and answers is what the columns of
`watchkeeper.model.replication.variants` say; what a fetch may answer is what
`watchkeeper.model.properties.group_offsets` says of runs.
"""
