"""What DuckDB answers in `fluss demo`; {url} is the address of the demo's shop."""

REVENUE_BY_COUNTRY = """\
import fluss_duckdb

con = fluss_duckdb.connect(url="{url}")
answer = con.sql('''
    SELECT country, sum(amount)
    FROM fluss('shop.orders') AS o JOIN fluss('shop.customers') AS c ON o.customer = c.id
    GROUP BY country
''').fetchall()
"""
