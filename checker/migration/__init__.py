"""The migration of a group's offsets between ZooKeeper and Kafka, searched in every interleaving.

Reading order:

    group     the members, one partition and both stores, and each step that can come next
    search    the nearest start of a member below what the group has committed
    plan      what an operator has to do, as text

The rules of the settings are in `watchkeeper.model.offset_manager.migration`.
"""
