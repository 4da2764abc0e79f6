"""Logs at live brokers: the same rows as from their files, by requests over TCP.

`addresses` holds where brokers are and how long they are retried, `connection` sends requests,
`protocol` finds out whether brokers speak 0.7 or 0.8, `listing` lists their logs, `broker_log`
cuts them into splits, `fetcher` fetches from one log, and `fetched` makes entries and rows of
that. `retries` has the rule that all of them retry by.

Nothing here changes a broker: no request creates a topic.
"""
