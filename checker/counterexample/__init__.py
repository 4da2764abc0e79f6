"""From a state of the search to steps that people and replays follow.

`path` finds the steps that lead to a state, those the reduction skipped included;
`explanation` describes them and says in one sentence what they violate; `disabled` says why
the other processes could not move; `replay_steps` turns a schedule into single actions with
their expected answers.
"""
