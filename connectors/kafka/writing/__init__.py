"""Writing to Kafka topics: messages, transactions and the process that commits."""
