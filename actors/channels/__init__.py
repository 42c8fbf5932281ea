"""The transport of records between workers: sockets, frames, credit, and authentication."""
