"""ZooKeeper and brokers in operation: audit, offsets, administration, brokers, calibration.

`command` is the command line. The folder `audit` reads a registry, judges it and prints or serves
that; `offsets` exports and resets the offsets of a group. `broker` runs a broker, `mirror` a
mirror, and `zookeeper` (command line: `zookeeper_command`) a ZooKeeper. `calibrate` measures a
ZooKeeper and `calibrate_disk` a disk; both write a profile, whose sections `disk_profile` puts
together.

`admin_command` is the command line of administrative changes. `admin` reads a cluster and carries
a plan out; `administer` has topics, elections, settings and the controller, `reassign` the moves
of partitions.
"""
