"""End-to-end latency at a fixed rate, compared with Bytewax."""
