// The connection, tables and rows that all cases share.

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.admin.Admin;
import org.apache.fluss.client.lookup.LookupResult;
import org.apache.fluss.client.table.Table;
import org.apache.fluss.client.table.scanner.batch.BatchScanner;
import org.apache.fluss.client.table.scanner.log.LogScanner;
import org.apache.fluss.metadata.PartitionInfo;
import org.apache.fluss.metadata.PartitionSpec;
import org.apache.fluss.metadata.Schema;
import org.apache.fluss.metadata.TableBucket;
import org.apache.fluss.metadata.TableDescriptor;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.row.InternalRow;
import org.apache.fluss.types.DataTypes;

abstract class Cases {
    static final Duration POLL = Duration.ofMillis(500);
    static final int POLLS_MAX = 40;

    final Recorder recorder;
    final Connection connection;
    final Admin admin;
    final String database;
    final TablePath log;
    final TablePath keyed;
    final TablePath days;
    final TablePath dayLog;
    final TablePath prefixed;
    final TablePath numbered;
    final TablePath summed;
    final TablePath missing;

    Cases(Recorder recorder, Connection connection, String database) {
        this.recorder = recorder;
        this.connection = connection;
        admin = connection.getAdmin();
        this.database = database;
        log = TablePath.of(database, "log");
        keyed = TablePath.of(database, "keyed");
        days = TablePath.of(database, "days");
        dayLog = TablePath.of(database, "day_log");
        prefixed = TablePath.of(database, "prefixed");
        numbered = TablePath.of(database, "numbered");
        summed = TablePath.of(database, "summed");
        missing = TablePath.of(database, "missing");
    }

    abstract void run() throws Exception;

    final void step(String name, Callable<?> work) {
        recorder.step(name, work);
    }

    static <T, R> R got(CompletableFuture<T> future, Function<T, R> essence) throws Exception {
        return Recorder.got(future, essence);
    }

    /** Ask until the answer is as expected, for as long as a server may take; return the last answer. */
    static <T> T settled(Callable<T> ask, T expected) throws Exception {
        var found = ask.call();
        for (int times = 0; times < POLLS_MAX && !found.equals(expected); times++) {
            Thread.sleep(POLL.toMillis());
            found = ask.call();
        }
        return found;
    }


    interface Use {
        Object of(Table table) throws Exception;
    }

    Object with(TablePath path, Use use) throws Exception {
        try (var table = connection.getTable(path)) {
            var found = use.of(table);
            return Proxy.isProxyClass(found.getClass()) ? "made" : found;
        }
    }

    // --- rows and names

    static Schema.Builder schema() {
        return Schema.newBuilder().column("id", DataTypes.INT()).column("name", DataTypes.STRING());
    }

    static TableDescriptor.Builder table(Schema schema, int buckets) {
        return TableDescriptor.builder().schema(schema).distributedBy(buckets);
    }

    static PartitionSpec day(String name) {
        return new PartitionSpec(Map.of("day", name));
    }

    static BinaryString text(String value) {
        return value == null ? null : BinaryString.fromString(value);
    }

    static GenericRow item(int id, String name) {
        return GenericRow.of(id, text(name));
    }

    static GenericRow dayRow(String day, long id) {
        return GenericRow.of(text(day), id, text("x" + id));
    }

    static String counts(List<PartitionInfo> found) {
        var counts = new TreeMap<String, Integer>();
        found.forEach(each -> counts.put(each.getPartitionName(), each.getBucketCount()));
        return counts.toString();
    }

    TableBucket bucket(TablePath path, int bucket) throws Exception {
        return new TableBucket(admin.getTableInfo(path).get().getTableId(), bucket);
    }

    long partition(TablePath path, String name) throws Exception {
        for (var each : admin.listPartitionInfos(path).get()) {
            if (each.getPartitionName().equals(name)) {
                return each.getPartitionId();
            }
        }
        throw new IllegalStateException("no partition " + name);
    }

    static String rows(LookupResult found, int place) {
        var texts = new TreeSet<String>();
        for (var row : found.getRowList()) {
            texts.add(row.isNullAt(place) ? "null" : row.getString(place).toString());
        }
        return texts.toString();
    }

    static TreeSet<String> polled(LogScanner scanner, int count, int place) {
        var found = new TreeSet<String>();
        for (int polls = 0; found.size() < count && polls < POLLS_MAX; polls++) {
            for (var record : scanner.poll(POLL)) {
                found.add(record.getRow().getString(place).toString());
            }
        }
        return found;
    }

    static TreeSet<String> read(BatchScanner scanner, int place) throws Exception {
        var found = new TreeSet<String>();
        try (scanner) {
            for (var rows = scanner.pollBatch(Duration.ofSeconds(10)); rows != null;
                    rows = scanner.pollBatch(Duration.ofSeconds(10))) {
                rows.forEachRemaining((InternalRow row) -> found.add(row.getString(place).toString()));
                rows.close();
            }
        }
        return found;
    }
}
