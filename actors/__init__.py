"""Ray actors, the data plane between them, and clocks: the only package with threads and sockets."""
