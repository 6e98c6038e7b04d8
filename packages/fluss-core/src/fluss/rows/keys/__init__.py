"""Keys: their bytes, the bucket they hash to, and the partition a row belongs to."""
