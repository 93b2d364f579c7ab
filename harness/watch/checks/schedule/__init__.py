"""Schedule: the learning rate's scheduler drives the optimizer in use, once an update or an epoch, and ends with it."""
