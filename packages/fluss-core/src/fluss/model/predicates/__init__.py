"""Conditions on rows, as users write them and bound to the columns of a schema."""
