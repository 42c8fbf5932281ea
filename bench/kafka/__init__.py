"""The cost of reading and writing topics of Kafka, and a broker to measure and test with."""
