"""What `bench/peers.py` holds against ours: the same model in other languages, and who runs it.

`two_phase` is two-phase commit as a system that is searched here, `two_phase.rs` the same for
Stateright and `TwoPhase.tla` for TLC; `checkers` runs those two. `comparison` is a row of the
table, or the reason why there is none.
"""
