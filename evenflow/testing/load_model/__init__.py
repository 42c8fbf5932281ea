"""A simulated cluster with rates, in which scaling policies act in a closed loop."""
