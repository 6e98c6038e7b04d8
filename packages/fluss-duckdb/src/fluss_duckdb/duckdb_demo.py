"""What DuckDB answers in `fluss demo`; {url} is the cluster, {database} the demo's database."""

REVENUE_BY_COUNTRY = """\
import fluss_duckdb

con = fluss_duckdb.connect(url="{url}")
answer = con.sql('''
    SELECT country, sum(amount)
    FROM fluss('{database}.orders') AS o
    JOIN fluss('{database}.customers') AS c ON o.customer = c.id
    GROUP BY country
''').fetchall()
"""
