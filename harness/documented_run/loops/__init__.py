"""The documented ways to train, each as the document writes it."""
