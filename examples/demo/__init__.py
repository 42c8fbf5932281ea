"""What `delays.py` needs around its dataflow: the data, Spark and Ray, and what is seen of it."""
