"""The account of a run: its entities, made once and shared. What one family of checks alone needs is in facts/."""
