"""Plans moves from load, without I/O."""
