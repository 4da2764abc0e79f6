"""The audit of a live or simulated registry.

Reading order: `snapshot` (znodes as read), `registry_view` (what they mean to consumers),
`control_plane` (what they mean to a controller), `audit` (all findings), `finding` (their kinds),
`checks` and `control_plane_checks` (one function a fault), `target_assignment` and `what_if` (the
assignment after a rebalance or a change), `retry_budget` (attempts against the session timeout).
"""
