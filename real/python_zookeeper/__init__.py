"""A ZooKeeper in Python: the ensemble of the model on TCP, in this process or in one of its own.

Read in this order:

  listener          ports, connections and time, on asyncio
  group_commit      writes that are durable in a data folder before they are answered
  service           the three together, as long as they serve
  thread_ensemble   a service in a thread of this process
  process_ensemble  a service in a process of its own; its servers are `process_server`,
                    its process is `child`, and what passes between the two is `orders`
  quick_import      how both of them and the command serve soon after their start
  write_record      what the trace of a run needs of all that was committed
"""
