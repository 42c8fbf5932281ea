"""The dataflow as scaling policies see it: measured rates, demand, shortfall and skew of each operator."""
