"""Identities of operators, sources and sinks: equal if a program that was edited and run again describes the same."""
