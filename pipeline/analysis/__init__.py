"""The analysis of runs: their traces as one table, and every property computed a second time.

Reading order: `facts/` (events as a table, intervals, facts of plans, messages), `properties/`
(every property a second time), `cross_check` (against the verdicts of the runs), `metrics`,
`metrics_table`, `lags`, `coverage` and `failure_clusters` (further results), `inevitability`
(branches of one failure), `run` (all of it together), `runs` and `store` (input and output);
`engine/` (what computes the tables: DuckDB, or Spark).

Every step is a function from tables to tables, and none calls the judges of the model: both
verdicts follow from one trace in different ways.
"""
