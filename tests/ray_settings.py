"""The environment of Ray clusters that only tests use: Ray's own processes do no more than a job needs of them.

Workers run at the normal priority, as on a cluster that evenflow starts. Ray starts none before a job asks for it, collects no metrics of
its own, and doesn't look for new log files to print in the driver.
"""

from __future__ import annotations

RAY_SETTINGS = {
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_metrics_collection": "0",
    "LOG_NAME_UPDATE_INTERVAL_S": "86400",
}
