"""What runs a program of the model in a process.

Read `driver` first: it performs the effects of one program with a ZooKeeper client. `tasks`
runs the tasks of a process on an event loop, with `queues` between them; `task_driver` joins
the two. `sync_calls` lets Python threads call into the tasks, `stream_fetcher` is the fetching
side of a consumer of messages, `loop_thread` an event loop in a thread.
"""
