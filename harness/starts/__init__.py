"""The one place that starts a user's script: in a place of its own, recorded, killed, started again.

A start is told what to do by its orders (:mod:`harness.starts.orders`). What a recorder writes down of it is its
journal (:mod:`harness.starts.journal`).
"""
