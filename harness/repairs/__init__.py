"""Repairs: what ``harness check --fix`` and ``--diff`` try for a finding, and how a try is proved.

A file for each family of checks, and in it a function for each check whose repair is one place. It knows what the fault
looks like in a script and yields edits of it; :mod:`harness.repairs.prove` runs the script again with each, and keeps
the first that is a repair.
"""
