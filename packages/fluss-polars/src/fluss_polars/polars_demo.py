"""What Polars answers in `fluss demo`; {url} is the cluster, {database} the demo's database."""

REVENUE_BY_COUNTRY = """\
import polars as pl
import fluss_polars

orders = pl.scan_fluss("{url}/{database}.orders")
customers = pl.scan_fluss("{url}/{database}.customers")
joined = orders.join(customers, left_on="customer", right_on="id")
answer = joined.group_by("country").agg(pl.col("amount").sum()).collect().rows()
"""
