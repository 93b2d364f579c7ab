"""Parameters: the optimizer's steps change what is trained, and nothing else changes anything."""
