"""SQL over streams: sqlglot parses the text, and each clause becomes calls of the public API, so that a flow is as if written by hand."""
