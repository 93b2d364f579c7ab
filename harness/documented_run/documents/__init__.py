"""The documents' code, run as printed: what a reader of the course meets on the versions that are installed."""
