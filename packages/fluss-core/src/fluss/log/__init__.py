"""Reading logs: fetching ahead, remote segments, decoding.

Rule: `plan*.py` decides what is fetched and what follows from errors; the fetcher sends and keeps
what arrives undecoded; decoding happens on the reader's thread. Which buckets a scan reads, and
from where to where, is decided in `fluss.scan`.
"""
