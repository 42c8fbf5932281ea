"""The dataflow engine without I/O: graph, plan, batches, operators, windows, and the task's state machine.

Nothing here opens a file or a socket, starts a thread, or reads a clock: events come in, effects go out.
"""
