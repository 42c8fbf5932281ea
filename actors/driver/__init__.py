"""The driver, a program that starts jobs: it finds the cluster, lends processes to workers, and says what a start waits for."""
