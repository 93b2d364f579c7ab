"""Mode: dropout and normalisation are in train mode for updates, in eval mode and without a graph for evaluation."""
