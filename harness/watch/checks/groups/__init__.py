"""Parameter groups: keys that the optimizer knows, no tensor twice, and the exemption from weight decay as meant."""
