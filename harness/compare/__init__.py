"""``harness compare``: where two runs part first, and why."""
