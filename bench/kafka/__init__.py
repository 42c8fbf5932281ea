"""Topics of Kafka: what reading and writing them costs, beside other systems, and a broker to measure with."""
