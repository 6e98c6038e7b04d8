"""Conversions between the batches of users, the columns of `rows` and the form of the wire."""
