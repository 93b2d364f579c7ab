"""Loss: what is differentiated is the loss of the raw logits and the labels of the batch."""
