"""What the stage costs measures: memory that is resident, what a graph keeps, how often a compiler begins anew."""
