"""The fields of a scenario file, as pydantic models.

`schema` is the whole file; `message_schema` and `search_schema` hold the fields about messages
and searches. `entries` checks the form of timeline entries, whose verbs come from
`watchkeeper.model.plan.faults`. `validation` turns pydantic's errors into sentences.
"""
