"""A test's own modules within a world: preempted between lines, and one copy for each process.

Its modules:

  preemption   a switch point before each statement, by rewriting the syntax tree
  own_modules  each process has its own copy of some modules
"""
