"""A program as a value: what it awaits, what it receives, and the errors between.

A program is a coroutine function without I/O, clock or randomness; a *world* (`sim`, `real`,
`checker`) runs it. Users' own programs import from here.

  program     what a program is: a turn and a state; read this first
  operations  the requests to ZooKeeper
  effects     everything else that a program awaits: events, time, fetching, the trace
  events      what reaches its inbox: fired watches, session events, commands
  errors      the errors of ZooKeeper, as exceptions and as values
  retry       ways to repeat a request, and to create parents
  orders      commands that a task gives its program and waits for
  inbox       which notifications a later read supersedes
  tasks, rpc  effects of further coroutines of a process: queues, and calls to brokers
"""
