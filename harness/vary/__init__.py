"""``harness vary``: a script once more with one thing changed that must not matter, or that must."""
