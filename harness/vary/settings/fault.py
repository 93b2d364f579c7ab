"""What is wrong with a setting, as a fault: found by :mod:`harness.vary.settings.run`, and no relation of its own."""

from __future__ import annotations

from harness.catalogue import SETTINGS, Fault


class SettingFault(Fault, package=SETTINGS, family="settings"):
    """A fault of a setting."""
