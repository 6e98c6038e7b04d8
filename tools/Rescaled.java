// Reads and writes tables of Fluss 1.0 with Apache Fluss's own Java client of 1.0.0: partitions with
// different bucket counts, rows with a time to live, typed rows.
// tests/cluster/scan/test_java_1_0.py runs it and compares what it prints and writes.
//
//   java -cp fluss-client-1.0.0.jar tools/Rescaled.java BOOTSTRAP DATABASE
//
// (Java 17 or newer.) The database has the table `ours` (day STRING, id BIGINT, x STRING, primary key
// (day, id), partitioned by day), whose partitions d1, d2 and d3 have the ids 0 to 39. The program
// prints one line for each step.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.client.admin.Admin;
import org.apache.fluss.client.table.Table;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.metadata.PartitionSpec;
import org.apache.fluss.metadata.Schema;
import org.apache.fluss.metadata.TableChange;
import org.apache.fluss.metadata.TableDescriptor;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.row.InternalRow;
import org.apache.fluss.types.DataTypes;

public final class Rescaled {
    private static final int ROWS = 40;

    public static final class Visit {
        public String day;
        public Long id;
        public String x;

        public Visit() {}

        Visit(String day, long id, String x) {
            this.day = day;
            this.id = id;
            this.x = x;
        }
    }

    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(arguments[0].split(",")));
        var database = arguments[1];
        try (var connection = ConnectionFactory.createConnection(settings);
                var admin = connection.getAdmin()) {
            readOurs(connection, admin, TablePath.of(database, "ours"));
            writeOurs(connection, TablePath.of(database, "ours"));
            writeTheirs(connection, admin, TablePath.of(database, "theirs"));
            keepForAWhile(connection, admin, TablePath.of(database, "expiring"));
        }
    }

    private static void readOurs(Connection connection, Admin admin, TablePath path)
            throws Exception {
        counts(admin, path);
        try (var table = connection.getTable(path)) {
            System.out.println("epoch " + table.getTableInfo().getBucketCountEpoch());
            var lookuper = table.newLookup().createLookuper();
            int found = 0;
            for (var day : List.of("d1", "d2", "d3")) {
                for (long id = 0; id < ROWS; id++) {
                    var key = GenericRow.of(BinaryString.fromString(day), id);
                    var row = lookuper.lookup(key).get().getSingletonRow();
                    found += row != null && text(row, 2).equals(day + " " + id) ? 1 : 0;
                }
            }
            System.out.println("lookups " + found);
            System.out.println("scanned " + scan(table).size());
        }
        System.out.println("row count " + admin.getTableStats(path).get().getRowCount());
    }

    private static void writeOurs(Connection connection, TablePath path) throws Exception {
        try (var table = connection.getTable(path)) {
            var writer = table.newUpsert().createTypedWriter(Visit.class);
            for (var day : List.of("d1", "d2", "d3")) {
                for (long id = 1_000; id < 1_000 + ROWS; id++) {
                    writer.upsert(new Visit(day, id, "java " + day + " " + id));
                }
            }
            writer.flush();
        }
    }

    private static void writeTheirs(Connection connection, Admin admin, TablePath path)
            throws Exception {
        var schema = Schema.newBuilder()
                .column("day", DataTypes.STRING())
                .column("id", DataTypes.BIGINT())
                .column("x", DataTypes.STRING())
                .primaryKey("day", "id")
                .build();
        var descriptor = TableDescriptor.builder().schema(schema).partitionedBy("day").distributedBy(3);
        admin.createTable(path, descriptor.build(), false).get();
        for (int buckets : new int[] {3, 7, 2}) {
            if (buckets != 3) {
                admin.alterTable(path, List.of(TableChange.modifyBucketCount(buckets)), false).get();
            }
            var spec = new PartitionSpec(Map.of("day", "b" + buckets));
            admin.createPartition(path, spec, false).get();
            try (var table = connection.getTable(path)) {
                var writer = table.newUpsert().createWriter();
                for (long id = 0; id < ROWS; id++) {
                    writer.upsert(row("b" + buckets, id, "java " + id));
                }
                writer.flush();
            }
        }
        counts(admin, path);
    }

    private static void keepForAWhile(Connection connection, Admin admin, TablePath path)
            throws Exception {
        var schema = Schema.newBuilder()
                .column("id", DataTypes.BIGINT())
                .column("at", DataTypes.BIGINT())
                .primaryKey("id")
                .build();
        var descriptor = TableDescriptor.builder().schema(schema).distributedBy(1)
                .property("table.kv.ttl", "1 d")
                .property("table.kv.ttl.time-column", "at");
        admin.createTable(path, descriptor.build(), false).get();
        try (var table = connection.getTable(path)) {
            var properties = table.getTableInfo().getProperties().toMap();
            System.out.println("layout " + properties.get("table.kv.value-layout-version"));
            var writer = table.newUpsert().createWriter();
            var now = System.currentTimeMillis();
            writer.upsert(GenericRow.of(1L, now));
            writer.upsert(GenericRow.of(2L, 1_000L));
            writer.flush();
            var row = table.newLookup().createLookuper().lookup(GenericRow.of(1L)).get();
            System.out.println("kept " + (row.getSingletonRow().getLong(1) == now));
        }
    }

    private static void counts(Admin admin, TablePath path) throws Exception {
        var lines = new TreeSet<String>();
        for (var info : admin.listPartitionInfos(path).get()) {
            lines.add(info.getPartitionName() + "=" + info.getBucketCount());
        }
        System.out.println("counts " + lines);
    }

    private static TreeSet<String> scan(Table table) throws Exception {
        var found = new TreeSet<String>();
        try (var scanner = table.newScan().createBatchScanner()) {
            for (var rows = scanner.pollBatch(Duration.ofSeconds(10)); rows != null;
                    rows = scanner.pollBatch(Duration.ofSeconds(10))) {
                rows.forEachRemaining(row -> found.add(text(row, 0) + row.getLong(1) + text(row, 2)));
                rows.close();
            }
        }
        return found;
    }

    private static GenericRow row(String day, long id, String x) {
        return GenericRow.of(BinaryString.fromString(day), id, BinaryString.fromString(x));
    }

    private static String text(InternalRow row, int place) {
        return row.getString(place).toString();
    }
}
