"""The entry point of pytest's plugin: it names the module that has it, and imports nothing."""

pytest_plugins = ("watchkeeper.suite.plugin",)
