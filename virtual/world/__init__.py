"""One run in virtual time, and many of them.

Read in this order:

  world               processes, a ZooKeeper, faults, and what has to hold
  checks              properties: mutual exclusion, elements, and predicates of one's own
  faults, nemesis     what may strike, the plan of one run, and its strikes
  run, outcome        a test run once, and what that has shown
  campaign            a test with many seeds
  shrink              a failing run made smaller
  report, folder      what a failing run says and writes
  replay              a failing run once more
  brief               seeds that another process runs, and what it sends back
  simulated           the decorator that joins them
  kazoo_names         kazoo's sets, in the order of insertion, and its polling
  source_lines        where in the user's code each request comes from
"""
