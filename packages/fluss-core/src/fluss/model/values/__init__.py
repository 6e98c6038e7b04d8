"""Conversion of users' values to the physical values that codecs store, and back."""
