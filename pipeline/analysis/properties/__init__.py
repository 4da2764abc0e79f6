"""Every property a second time, by joins and windows over the tables of `facts`.

`ownership` (always), `quiescence` (when a group is at rest), `at_quiescence` (cover, consensus,
agreed view, balance), `progress`, `sometimes`; for messages `delivery`, `order_and_commits` and
`starvation`, put together by `messages`.
"""
