"""The search of one replicated partition, by the rules of each version of Kafka.

`partition` is the partition as a value, with every step that is possible; `search` finds the
nearest violation of each property. `counterexample` makes a value of it, from which a page is
drawn.
"""
