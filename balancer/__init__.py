"""Planning of moves from load, without I/O."""
