"""The needs of a job: processor time, memory, network and storage."""
