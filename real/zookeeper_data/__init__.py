"""The data folder of a ZooKeeper in Apache's own formats, so that either can go on with it.

data_folder  what a server does with it: recover, append, commit, take snapshots
recovery     the tree from the newest snapshot that can be read and the log after it
file_layer   the operations on files that durability depends on; tests put a disk that fails
             behind the same interface
"""
