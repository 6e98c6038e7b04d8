"""Keys: which bytes they are, which bucket they hash to, and which partition a row belongs to."""
