"""No pictures are read from files."""
