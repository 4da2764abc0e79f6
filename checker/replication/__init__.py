"""The search of one replicated partition, by the rules of each version of Kafka.

`partition` is the partition as a value, with every step that is possible; `search` finds the
nearest violation of each property; `representatives` merges states with the same future, so that
a search sees fewer; `published` takes the steps of published TLA+ models, to compare with TLC;
`counterexample` makes a value of a violation, from which a page is drawn.
"""
