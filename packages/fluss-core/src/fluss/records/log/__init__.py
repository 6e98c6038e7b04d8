"""Log record batches: headers, bodies, statistics, and the segments that hold them."""
