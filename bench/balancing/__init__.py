"""The cost of a balancer that has nothing to do."""
