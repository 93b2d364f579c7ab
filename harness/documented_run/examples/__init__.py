"""Scripts to run, to read and to start from."""
