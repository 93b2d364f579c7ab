"""What must not matter (``depends``), and what must (``independent``): one file a relation."""
