"""Visits of a shop, as a service: clicks from Kafka become sessions in PostgreSQL and in an Iceberg table, each exactly once.

    pip install 'evenflow[kafka,postgres,iceberg,s3]'
    export KAFKA=localhost:9092 PG_ADDRESS=localhost/shop PG_PASSWORD=...
    export EVENFLOW_CHECKPOINT=s3://my-bucket/jobs WAREHOUSE=s3://my-bucket/tables
    python examples/service.py

docs/how-to/service.md starts, stops and changes it, step by step.
"""

from __future__ import annotations

import os

import evenflow as ef

CLICK = {"user": "string", "page": "string", "at": "int64"}

flow = ef.Dataflow("visits")
clicks = flow.read(ef.read_kafka("clicks", bootstrap=os.environ["KAFKA"], schema=CLICK, event_time="at", max_delay="10s"))
visits = clicks.key_by("user").window(ef.session("15m")).aggregate(clicks=ef.count(), pages=ef.count_distinct("page")).named("sessions")
database = f"shop:{ef.secret('env:PG_PASSWORD')}@{os.environ['PG_ADDRESS']}"
catalog = {"type": "sql", "uri": f"postgresql+psycopg://{database}", "warehouse": os.environ["WAREHOUSE"]}
visits.write(ef.write_sql(f"postgresql://{database}", "visits"))
visits.write(ef.write_iceberg("shop.visits", catalog="shop", options=catalog))
flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="5s"))).wait()
