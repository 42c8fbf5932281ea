"""The keyed state of operators: tables, panes, arrays, objects and records, in memory or in a backend."""
