"""Users' own protocols: what `watchkeeper.explore` searches.

`explore` is the public function and its result; `arguments` validates what it is given;
`system` is the searched system; `view` is the state that claims are evaluated on;
`counterexample` prints a violation.
"""
