"""Memory: graphs and loss tensors are let go from update to update."""
