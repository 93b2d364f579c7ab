"""Sample ledger: which rows each pass consumed, in which order, with which labels."""
