"""The controller of Kafka 0.8: the broker that elects the leaders of partitions.

Every broker runs the program of `broker`; the one that creates `/controller` is the controller.
It keeps a copy of the cluster in memory, and writes the state of each partition. In this slice
it sends no requests to brokers: leaders are what ZooKeeper says.

  variants    the two versions, 0.8.2.2 as shipped and `hardened`, as one table; read this first
  states      the states of partitions and replicas
  selectors   who leads next: four pure functions
  context     what a controller knows of the cluster: a frozen value
  writes      a write of a state as a value, before it is made
  reign       a controller at work during one turn: its reads and its writes
  partitions  the transitions of partitions
  replicas    the transitions of replicas
  failover    what a new controller does first
  election    how a broker becomes the controller
  listeners   what it does about each change that it sees
  controller  the tasks of one broker's controller, one a turn
  broker      a broker's registration and its controller, as one program
"""
