"""Reading logs: fetching ahead, remote segments, decoding.

Rule: `plan*.py` decides what is fetched and what follows from errors; the fetcher sends and keeps
what arrives undecoded; `range_reader` is the one loop that reads to an end; decoding happens on the
reader's thread. `fluss.scan` decides which ranges of which buckets a scan reads.
"""
