"""Which ZooKeeper a run starts: Apache's server in Java, or the one in Python of this project.

`ensemble` is what both can do, `implementation` the choice between them, `committed` what they
have committed. Everything that starts a ZooKeeper starts it here.
"""
