"""The task: what one worker does, as a state machine without I/O, and the parts that it is composed of."""
