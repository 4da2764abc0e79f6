"""Work that is too large for one process: sweeps, analysis of traces, loads of broker logs.

`session` is the one place that starts Spark; `workers` and `ship_code` give its workers this
package; `timeouts` bounds every wait for it; `errors` holds its one exception. `sweeps/` runs
thousands of simulations, `analysis/` judges traces a second time, `kafkalog/` reads the logs of
brokers, `loading/` loads them into tables, `activity/` runs the jobs of the design page.
"""
