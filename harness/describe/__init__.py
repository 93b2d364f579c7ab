"""What a run did, on one page: sections gather it while the script runs, and say it as lines (``harness describe``)."""
