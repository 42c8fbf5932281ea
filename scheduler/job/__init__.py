"""The job as a state machine without I/O: its record, what it is asked, what it tells workers, and when it starts and ends."""
