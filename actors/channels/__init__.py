"""Records between workers: sockets, frames, credit, and who may connect."""
