"""Threads in virtual time: ordinary threaded code under one clock, every switch decided.

Nothing here knows ZooKeeper. Read in this order:

  scheduler, task, process  greenlets, and who runs next
  calendar                  calls at moments
  current                   which world runs in this thread of the operating system
  lock, local, thread       what `threading` makes within a world
  clock, chance, system     time, random numbers, and what an operating system gives
  patches                   the names that are replaced, and where they are looked for
  teardown                  the end of a world
  watchdog                  stops what computes for too long
  errors                    what is refused
"""
