"""The jobs of a site on the activity of its members: the design page's use cases.

`events` defines the topics, `generator` draws events from `settings` with `random_draws`.
The jobs, each a function from events to a table: `feed` (news), `relevance`,
`abuse` (crawlers and spam), `alerts`, `warehouse`. `jobs` lists them, `run_job` runs one in batch
or as a stream, with `log_input`, `windows`, `table_output` and `folder`.
"""
