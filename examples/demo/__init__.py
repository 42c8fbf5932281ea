"""The parts of `delays.py` around its dataflow: the data, Spark and Ray, and the display."""
