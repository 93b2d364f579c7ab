"""Settings: what the command line and configurations are given reaches the training."""
