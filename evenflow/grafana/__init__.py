"""`evenflow grafana`: dashboards for Grafana, and a configuration with which Prometheus finds the jobs."""
