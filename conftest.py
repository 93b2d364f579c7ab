"""Turns on how this suite is run, and the plugin where the package is not installed."""

from importlib.metadata import entry_points

pytest_plugins = ["tests.rings", "tests.impact", "tests.budget"]
if not any(entry_point.value == "full_training_harness" for entry_point in entry_points(group="pytest11")):
    pytest_plugins.append("full_training_harness")
