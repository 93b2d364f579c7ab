"""Turns the plugin on for this checkout, where the package is not installed."""

from importlib.metadata import entry_points

if not any(entry_point.value == "harness.pytest_plugin" for entry_point in entry_points(group="pytest11")):
    pytest_plugins = ["harness.pytest_plugin"]
