"""Silent faults of the libraries themselves, each as the smallest script that has it; docs/faults.md tells of them."""
