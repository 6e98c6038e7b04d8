"""Columns and schemas, their builders, rules and JSON."""
