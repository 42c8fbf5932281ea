"""SVG pictures for notebooks and files: charts of a job, and the graph of a flow."""
