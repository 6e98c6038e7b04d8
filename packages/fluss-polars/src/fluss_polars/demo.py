"""What Polars answers in `fluss demo`; {url} is the address of the demo's shop."""

REVENUE_BY_COUNTRY = """\
import polars as pl
import fluss_polars

orders = pl.scan_fluss("{url}/shop.orders")
customers = pl.scan_fluss("{url}/shop.customers")
joined = orders.join(customers, left_on="customer", right_on="id")
answer = joined.group_by("country").agg(pl.col("amount").sum()).collect().rows()
"""
