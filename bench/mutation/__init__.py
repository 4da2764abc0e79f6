"""Small mutants of the protocol code, and what kills each: the parts of `mutation_score.py`.

Reading order: `operators` (the edits of a source), `catalogue` (the modules and their mutants),
`outcome` (what a run, a search or a test comes to), `killers` (the runs and searches), `plant`
(a child process that imports an edited module), `coverage` (the lines that a killer executes),
`survivors` (the file that explains what nothing kills), `score` (the verdict on each mutant).
"""
