"""The public API for tests and notebooks.

`simulate` checks its `arguments`, runs a scenario and returns a `Result` (`result`: verdicts,
JSON and report; `tables`: how it is printed). `profile` turns a profile file into the latencies
of a simulation. `strategies` generates scenarios for Hypothesis. `pytest_plugin` names the plugin
of pytest, which is in `watchkeeper.suite`. Read `simulate`, then `result`.
"""
