"""The search of brokers that elect a controller, with every interleaving of their requests.

`brokers` has the programs, a topic that they lead, and the properties; a search of them is one of
`watchkeeper.checker.user_model`, which takes any program.
"""
