"""Short trainings from the state that a run is in, which the stage equivalence compares."""
