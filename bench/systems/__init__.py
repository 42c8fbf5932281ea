"""The systems that are compared: each module runs one of them, in a process of its own."""
