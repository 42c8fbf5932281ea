"""`evenflow grafana`: dashboards of what jobs tell Prometheus, and where Prometheus finds the jobs."""
