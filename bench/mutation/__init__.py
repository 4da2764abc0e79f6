"""Small mutants of the protocol code, and what kills each: the parts of `mutation_score.py`.

Reading order: `operators` (the edits of a source), `catalogue` (the modules and their mutants),
`outcome` (the result of a run, a search or a test), `killers` (the runs and searches),
`child_process` (a process that imports an edited module), `coverage` (the lines that a killer
executes), `survivors` (the file that explains each survivor), `score` (the verdict on each
mutant).
"""
