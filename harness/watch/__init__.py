"""The trace of a training loop, and (to come) the invariants over it. Depends on findings alone."""
