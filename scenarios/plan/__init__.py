"""From a scenario to a plan, the form that every world runs.

`build` puts a plan together, in a `context` that collects every problem before it gives up.
`clusters`, `groups`, `messages` and `mirrors` build its parts; `names` checks the names in
timeline entries, and `timeline` makes actions of them.
"""
