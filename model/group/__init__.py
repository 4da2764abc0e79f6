"""The consumer-group protocol: how consumers share the partitions of topics.

Read `rebalance` first: it has the steps of the design pages and why their order matters.

  variants         the versions of the protocol, as one table of answers
  state            configuration, state and names of a consumer
  consumer         a consumer's turns: events, rebalances, commits, lost connections
  registration     the own id, and the watches
  reads            steps 1 to 7 with one request after the other
  pipelined_reads  steps 1 to 3 in two batches, as the hardened variant reads
  assignment       who gets which partition: pure functions
  claims           steps 8 and 9: release and claim
  offsets          committed offsets: read, commit, commit with a fence
  settings         Kafka's own names and defaults
  layout_detection  a program that finds the layout of a registry first
"""
