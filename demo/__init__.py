"""A log directory worth looking at: the bird-call classifier that did not fit its GPU, and three that do."""
