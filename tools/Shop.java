// A small shop with Apache Fluss's own Java client: creates tables, writes, reads, looks up, drops.
// tests/conformance runs it on each server and compares what it prints.
//
//   java -cp fluss-client-0.9.1-incubating.jar tools/Shop.java BOOTSTRAP DATABASE
//
// (Java 17 or newer.) It prints one line for each step.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.client.table.Table;
import org.apache.fluss.client.table.scanner.log.LogScanner;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.metadata.DatabaseDescriptor;
import org.apache.fluss.metadata.PartitionSpec;
import org.apache.fluss.metadata.Schema;
import org.apache.fluss.metadata.TableBucket;
import org.apache.fluss.metadata.TableDescriptor;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.row.InternalRow;
import org.apache.fluss.types.DataTypes;

public final class Shop {
    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(arguments[0].split(",")));
        var database = arguments[1];
        try (var connection = ConnectionFactory.createConnection(settings);
                var admin = connection.getAdmin()) {
            admin.createDatabase(database, DatabaseDescriptor.EMPTY, true).get();
            var events = TablePath.of(database, "events");
            var stock = TablePath.of(database, "stock");
            var visits = TablePath.of(database, "visits");
            admin.createTable(events, descriptor(columns().build()).build(), false).get();
            var keyed = columns().primaryKey("id").build();
            admin.createTable(stock, descriptor(keyed).build(), false).get();
            var parted = columns().column("day", DataTypes.STRING()).primaryKey("id", "day").build();
            admin.createTable(visits, descriptor(parted).partitionedBy("day").build(), false).get();
            admin.createPartition(visits, new PartitionSpec(Map.of("day", "monday")), false).get();
            System.out.println("tables " + admin.listTables(database).get().stream().sorted().toList());
            events(connection, events);
            stock(connection, stock);
            visits(connection, visits);
            System.out.println("partitions " + admin.listPartitionInfos(visits).get().size());
            for (var path : List.of(events, stock, visits)) {
                admin.dropTable(path, false).get();
            }
            System.out.println("tables " + admin.listTables(database).get());
        }
    }

    private static void events(Connection connection, TablePath path) throws Exception {
        try (var table = connection.getTable(path)) {
            var writer = table.newAppend().createWriter();
            for (int id = 0; id < 1_000; id++) {
                writer.append(row(id, "event " + id));
            }
            writer.flush();
            read(table, table.newScan().createLogScanner(), 1_000);
            read(table, table.newScan().project(new int[] {1}).createLogScanner(), 1_000);
        }
    }

    private static void stock(Connection connection, TablePath path) throws Exception {
        try (var table = connection.getTable(path)) {
            var writer = table.newUpsert().createWriter();
            for (int id = 0; id < 100; id++) {
                writer.upsert(row(id, "first"));
            }
            writer.flush();
            writer.upsert(row(7, "second"));
            writer.delete(row(8, null));
            writer.flush();
            var parts = table.newUpsert().partialUpdate("id", "name").createWriter();
            parts.upsert(row(9, "third"));
            parts.flush();
            read(table, table.newScan().createLogScanner(), 105);
            var lookuper = table.newLookup().createLookuper();
            for (int id = 6; id < 11; id++) {
                look(lookuper.lookup(GenericRow.of(id)).get().getSingletonRow());
            }
            var bucket = new TableBucket(table.getTableInfo().getTableId(), 0);
            try (var scanner = table.newScan().limit(3).createBatchScanner(bucket);
                    var rows = scanner.pollBatch(Duration.ofSeconds(10))) {
                while (rows.hasNext()) {
                    look(rows.next());
                }
            }
        }
    }

    private static void visits(Connection connection, TablePath path) throws Exception {
        try (var table = connection.getTable(path)) {
            var writer = table.newUpsert().createWriter();
            for (int id = 0; id < 3; id++) {
                writer.upsert(GenericRow.of(id, text("guest"), text("monday")));
            }
            writer.flush();
            var key = GenericRow.of(2, text("monday"));
            look(table.newLookup().createLookuper().lookup(key).get().getSingletonRow());
        }
    }

    private static void read(Table table, LogScanner scanner, int count) throws Exception {
        try (scanner) {
            scanner.subscribeFromBeginning(0);
            var kinds = new java.util.TreeMap<String, Integer>();
            long last = -1;
            int fields = 0;
            for (int seen = 0; seen < count; ) {
                for (var each : scanner.poll(Duration.ofSeconds(10))) {
                    kinds.merge(each.getChangeType().shortString(), 1, Integer::sum);
                    last = each.logOffset();
                    fields = each.getRow().getFieldCount();
                    seen++;
                }
            }
            System.out.println("read " + kinds + " to " + last + " with " + fields + " columns");
        }
    }

    private static void look(InternalRow row) {
        System.out.println(row == null ? "absent" : "row " + row.getInt(0) + " " + row.getString(1));
    }

    private static Schema.Builder columns() {
        return Schema.newBuilder().column("id", DataTypes.INT()).column("name", DataTypes.STRING());
    }

    private static TableDescriptor.Builder descriptor(Schema schema) {
        return TableDescriptor.builder().schema(schema).distributedBy(1);
    }

    private static GenericRow row(int id, String name) {
        return GenericRow.of(id, name == null ? null : text(name));
    }

    private static BinaryString text(String text) {
        return BinaryString.fromString(text);
    }
}
