"""Records of runs side by side, and the releases between which they part."""
