"""What Polars answers in `fluss demo`; {url} is the cluster, {database} the demo's database."""

REVENUE_BY_COUNTRY = """\
import polars as pl
import fluss_polars

shop = "{url}/{database}"
orders = pl.scan_fluss(f"{{shop}}.orders")
customers = pl.scan_fluss(f"{{shop}}.customers")
both = orders.join(customers, left_on="customer", right_on="id")
revenue = both.group_by("country").agg(pl.sum("amount"))
answer = revenue.collect().rows()
"""
