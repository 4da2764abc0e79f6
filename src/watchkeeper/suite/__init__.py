"""What the test suites of users get from pytest's plugin.

`plugin` has the options, the fixtures and the hooks. `failure` says in a few lines what a failing
run shows, and keeps its folder. `scenario_file` collects scenarios as tests, and `github` tells a
job of GitHub what failed. Read `plugin` first.
"""
