"""The controller of Kafka 0.8: the broker that elects the leaders of partitions.

Every broker runs the program of `broker`; the one that creates `/controller` is the controller.
It keeps a copy of the cluster in memory, writes the state of each partition, and sends requests
to brokers, where they carry them out (`model/replication/`).

  state_machines  what a controller knows, writes and sends; read `variants` in it first
  failover      what a new controller does first
  election      how a broker becomes the controller
  listeners     what it does about each change that it sees
  preferred     the preferred replica of each partition leads again
  reassignment  a partition moves to other brokers
  deletion      topics are deleted: replicas first, znodes last
  changed_isrs  other brokers learn of the ISRs that leaders have changed
  shutdown      a broker that leaves hands over what it leads
  after_reign   what the shipped controller does when its reign is over
  tasks         what a controller has to do
  controller    the tasks of one broker's controller, one a turn
  broker        a broker's registration and its controller, as one program
"""
