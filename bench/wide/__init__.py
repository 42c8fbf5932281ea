"""The cost of many workers and key groups: the coordinator, routing, and views of a job, without a cluster."""
