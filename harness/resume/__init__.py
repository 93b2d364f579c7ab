"""Kill a training script, start it again, and compare update by update with what it does uninterrupted.

A loss (:mod:`harness.resume.losses`) is one thing that a script can lose where it was killed; it is named by comparing
the journal of the start after the kill with that of the uninterrupted run (:mod:`harness.starts.journal`).
"""
