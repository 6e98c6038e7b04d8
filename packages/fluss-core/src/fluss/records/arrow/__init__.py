"""Arrow batches in the form in which Fluss stores them, and the memory beneath them."""
