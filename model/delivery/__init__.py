"""The fate of messages: identities, intervals, and the ledger of losses and repeats.

`message_id` identifies a message, `interval_set` stores millions of numbers as intervals,
`ledger` records every message, `counts` is the result of a group.
"""
