"""Planning without I/O: from load to moves."""
