"""The parts of a simulated job: network, storage, workers and coordinator."""
