"""The page of ``harness report``: one file that loads nothing, made from records."""
