"""Mutants: variants of the protocol with one known mistake each, and what catches them.

`mutation` names the mistakes. Their code never runs in a shipped member: `steps` holds
mutated steps of a rebalance, `requests` mutated ways to make requests, and `members` the
subclasses of `GroupMember` that use them. `mutant` says what a mutant is: a base variant, one
mutation, and a configuration in which a search catches it. `catalogue` is the table of all
mutants; `by_name` finds variants and members. Read `catalogue`, then `members`.
"""
