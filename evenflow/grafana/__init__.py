"""`evenflow grafana`: dashboards for Grafana, alert rules, and a configuration with which Prometheus finds the jobs."""
