"""The engines that compute the tables of an analysis: DuckDB and Spark.

Reading order: `api` (the names that definitions import), `engine` (what an analysis needs of an
engine), `spark` (PySpark as it is), `duck` (DuckDB), which offers PySpark's names by
`duck_columns` (expressions), `duck_functions` and `duck_frames` (tables).

A definition exists once. Where both engines differ, it is written in a form that both compute, or
the difference is bridged in `duck_functions`.
"""
