"""TCP between clients and brokers.

`frames` reads length-prefixed frames from a connection; `rpc` sends requests to brokers.
"""
