// Databases, tables, their changes, partitions; and how they are dropped.

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.fluss.client.Connection;
import org.apache.fluss.metadata.AggFunctions;
import org.apache.fluss.metadata.DatabaseChange;
import org.apache.fluss.metadata.DatabaseDescriptor;
import org.apache.fluss.metadata.PartitionSpec;
import org.apache.fluss.metadata.Schema;
import org.apache.fluss.metadata.TableChange;
import org.apache.fluss.metadata.TableDescriptor;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.types.DataTypes;

final class CatalogCases extends Cases {
    CatalogCases(Recorder recorder, Connection connection, String database) {
        super(recorder, connection, database);
    }

    @Override
    void run() throws Exception {
        databases();
        tables();
        changes();
        partitions();
    }

    // --- databases and tables --------------------------------------------------------------------

    private void databases() {
        var descriptor = DatabaseDescriptor.builder().comment("first").customProperty("a", "1").build();
        step("a new database", () -> admin.createDatabase(database, descriptor, false));
        step("a database that exists", () -> admin.createDatabase(database, descriptor, false));
        step("a database that exists, ignored", () -> admin.createDatabase(database, descriptor, true));
        step("a database of an invalid name", () -> admin.createDatabase("a.b", descriptor, false));
        var changes = List.of(
                DatabaseChange.set("b", "2"), DatabaseChange.reset("a"), DatabaseChange.updateComment("second"));
        step("alter a database", () -> admin.alterDatabase(database, changes, false));
        step("alter a database by nothing", () -> admin.alterDatabase(database, List.of(), false));
        step("alter a missing database", () -> admin.alterDatabase("missing_db", changes, false));
        step("alter a missing database, ignored", () -> admin.alterDatabase("missing_db", changes, true));
        step("a database's facts", () -> got(admin.getDatabaseInfo(database), found -> {
            var facts = found.getDatabaseDescriptor();
            return facts.getComment().orElse("no comment") + " " + new TreeMap<>(facts.getCustomProperties());
        }));
        step("facts of a missing database", () -> admin.getDatabaseInfo("missing_db"));
        step("a database exists", () -> admin.databaseExists(database));
        step("a missing database exists", () -> admin.databaseExists("missing_db"));
        step("names of databases", () -> got(admin.listDatabases(), found -> found.contains(database)));
        step("summaries of databases", () -> got(admin.listDatabaseSummaries(), found -> found.stream()
                .filter(each -> each.getDatabaseName().equals(database))
                .map(each -> each.getTableCount() + " tables").toList()));
    }

    private void tables() {
        var plain = schema().build();
        var withKey = schema().primaryKey("id").build();
        var ofDays = Schema.newBuilder().column("day", DataTypes.STRING()).column("id", DataTypes.BIGINT())
                .column("x", DataTypes.STRING());
        var pairs = Schema.newBuilder().column("a", DataTypes.INT()).column("b", DataTypes.STRING())
                .column("x", DataTypes.STRING()).primaryKey("a", "b").build();
        var withNumbers = Schema.newBuilder().column("name", DataTypes.STRING()).column("number", DataTypes.BIGINT())
                .primaryKey("name").enableAutoIncrement("number").build();
        var sums = Schema.newBuilder().column("id", DataTypes.INT())
                .column("n", DataTypes.BIGINT(), AggFunctions.SUM()).primaryKey("id").build();
        step("a new log table", () -> admin.createTable(log, table(plain, 2).comment("a log").build(), false));
        step("a new table with a key", () -> admin.createTable(keyed, table(withKey, 2).build(), false));
        step("a new partitioned log table", () -> admin.createTable(
                dayLog, table(ofDays.build(), 2).partitionedBy("day").build(), false));
        step("a new partitioned table with a key", () -> admin.createTable(
                days, table(ofDays.primaryKey("day", "id").build(), 2).partitionedBy("day").build(), false));
        step("a new table with a bucket key", () -> admin.createTable(prefixed,
                TableDescriptor.builder().schema(pairs).distributedBy(2, "a").build(), false));
        step("a new table that counts", () -> admin.createTable(numbered, table(withNumbers, 1).build(), false));
        step("a new table that sums", () -> admin.createTable(
                summed, table(sums, 1).property("table.merge-engine", "aggregation").build(), false));
        step("a table that exists", () -> admin.createTable(log, table(plain, 2).build(), false));
        step("a table that exists, ignored", () -> admin.createTable(log, table(plain, 2).build(), true));
        step("a table of a missing database", () -> admin.createTable(
                TablePath.of("missing_db", "t"), table(plain, 1).build(), false));
        step("a table with an unknown option", () -> admin.createTable(
                missing, table(plain, 1).property("table.unknown", "1").build(), false));
        step("a table with three replicas", () -> admin.createTable(
                missing, table(plain, 1).property("table.replication.factor", "3").build(), false));
        step("a table's facts", () -> got(admin.getTableInfo(log), found -> found.getRowType() + " buckets "
                + found.getNumBuckets() + " schema " + found.getSchemaId() + " " + found.getComment().orElse("")));
        step("facts of a missing table", () -> admin.getTableInfo(missing));
        step("a table's schema", () -> got(admin.getTableSchema(keyed), found -> found.getSchemaId() + " "
                + found.getSchema().getRowType()));
        step("a schema by its id", () -> got(admin.getTableSchema(keyed, 1), found -> found.getSchemaId()));
        step("a schema by an unknown id", () -> admin.getTableSchema(keyed, 99));
        step("the schema of a missing table", () -> admin.getTableSchema(missing));
        step("a table exists", () -> admin.tableExists(log));
        step("a missing table exists", () -> admin.tableExists(missing));
        step("names of tables", () -> got(admin.listTables(database), TreeSet::new));
        step("names of tables of a missing database", () -> admin.listTables("missing_db"));
    }

    private void changes() {
        var last = TableChange.ColumnPosition.last();
        var more = TableChange.addColumn("more", DataTypes.STRING(), "added", last);
        alter("a property", log, TableChange.set("mine", "1"));
        alter("without a property", log, TableChange.reset("mine"));
        alter("an option", log, TableChange.set("table.log.ttl", "3 d"));
        alter("an option to a bad value", log, TableChange.set("table.log.ttl", "soon"));
        alter("a fixed option", log, TableChange.set("table.log.format", "indexed"));
        alter("an unknown option", log, TableChange.set("table.unknown", "1"));
        alter("a new column", prefixed, more);
        alter("a new column twice", prefixed, more);
        alter("a new column in front", prefixed, TableChange.addColumn(
                "first", DataTypes.INT(), null, TableChange.ColumnPosition.first()));
        alter("a new column NOT NULL", prefixed, TableChange.addColumn("n", DataTypes.INT().copy(false), null, last));
        alter("a new summed column", summed, TableChange.addColumn(
                "m", DataTypes.BIGINT(), null, last, AggFunctions.SUM()));
        alter("a column away", prefixed, TableChange.dropColumn("x"));
        alter("a column's name", prefixed, TableChange.renameColumn("x", "y"));
        alter("a column's type", prefixed, TableChange.modifyColumn("x", DataTypes.BYTES(), null, last));
        alter("a column and an option", prefixed, TableChange.addColumn("o", DataTypes.INT(), null, last),
                TableChange.set("mine", "1"));
        alter("buckets of an unpartitioned table", log, TableChange.modifyBucketCount(5));
        alter("buckets", dayLog, TableChange.modifyBucketCount(3));
        alter("nothing", log);
        alter("nothing of a missing table", missing);
        alter("a missing table", missing, TableChange.set("mine", "1"));
        step("alter: a missing table, ignored", () -> admin.alterTable(
                missing, List.of(TableChange.set("mine", "1")), true));
    }

    private void alter(String name, TablePath path, TableChange... changes) {
        step("alter: " + name, () -> admin.alterTable(path, List.of(changes), false));
    }

    private void partitions() {
        for (var path : List.of(days, dayLog)) {
            step("a new partition of " + path.getTableName(), () -> admin.createPartition(path, day("d1"), false));
        }
        step("another partition", () -> admin.createPartition(days, day("d2"), false));
        step("a partition that exists", () -> admin.createPartition(days, day("d1"), false));
        step("a partition that exists, ignored", () -> admin.createPartition(days, day("d1"), true));
        step("a partition of a reserved name", () -> admin.createPartition(days, day("__historical__"), false));
        step("a partition by a wrong key", () -> admin.createPartition(
                days, new PartitionSpec(Map.of("id", "1")), false));
        step("a partition of an unpartitioned table", () -> admin.createPartition(log, day("d1"), false));
        step("partitions", () -> got(admin.listPartitionInfos(days), Cases::counts));
        step("partitions by a value", () -> got(admin.listPartitionInfos(days, day("d2")), Cases::counts));
        step("partitions by an unknown key", () -> admin.listPartitionInfos(
                days, new PartitionSpec(Map.of("id", "1"))));
        step("partitions and the system's", () -> got(admin.listPartitionInfos(days, true), Cases::counts));
        step("partitions of an unpartitioned table", () -> admin.listPartitionInfos(log));
        step("drop a partition", () -> admin.dropPartition(days, day("d2"), false));
        step("drop a missing partition", () -> admin.dropPartition(days, day("d2"), false));
        step("drop a missing partition, ignored", () -> admin.dropPartition(days, day("d2"), true));
    }
}
