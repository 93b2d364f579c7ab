"""Update: each optimizer step makes the loss smaller, by what its formula says."""
