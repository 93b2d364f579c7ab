"""The causes of differences, one a file."""
