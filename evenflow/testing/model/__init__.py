"""A model of a cluster for scaling policies in a closed loop."""
