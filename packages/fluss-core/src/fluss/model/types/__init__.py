"""Data types: the classes, and their forms as text, JSON and Arrow."""
