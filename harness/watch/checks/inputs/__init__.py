"""Inputs: what the tokenizer made reaches the model whole, masked and labelled as it should be."""
