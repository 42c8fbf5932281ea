"""What operators keep of their keys: tables, panes, arrays, objects and records, in memory or in a backend."""
