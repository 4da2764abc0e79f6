"""TCP between clients and brokers.

`frames` reads length-prefixed frames from a connection; `rpc` sends requests to brokers;
`log_ends` requests the ends of logs for an audit.
"""
