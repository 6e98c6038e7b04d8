"""Columns and schemas: what they are, how they are built, and their JSON."""
