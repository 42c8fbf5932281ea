"""Aggregates: associative, commutative functions of groups of rows, which can be computed in parts.

`named/functions.py` creates them; a worker imports only those that its task needs.

>>> import numpy as np, pyarrow as pa
>>> from evenflow.engine.aggregates.named.functions import sum
>>> from evenflow.engine.batch import Batch
>>> batch = Batch(pa.record_batch({"delay": [5, 7, None]}))
>>> total = sum("delay").bind(batch.rows.schema, "totals")
>>> total.finish(total.partial(batch, np.array([0, 0, 1]), groups=2)).to_pylist()
[12, None]
"""
