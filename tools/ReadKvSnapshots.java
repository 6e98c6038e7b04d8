// Reads the newest KV snapshot of each bucket of a table with Apache Fluss's own Java client, which
// opens the files with its RocksDB. tests/cluster/server/test_kv_snapshots_in_java.py runs it.
//
//   java -cp fluss-client-1.0.0.jar tools/ReadKvSnapshots.java BOOTSTRAP DATABASE TABLE
//
// (Java 17 or newer.) Prints a line for each bucket: its partition or "-", its number, the id of its
// snapshot, the offset of the log; and a line for each row with its values. Tabs separate the words.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.client.admin.Admin;
import org.apache.fluss.client.metadata.KvSnapshots;
import org.apache.fluss.client.table.Table;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.metadata.TableBucket;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.row.InternalRow;

public final class ReadKvSnapshots {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(arguments[0].split(",")));
        var path = TablePath.of(arguments[1], arguments[2]);
        try (var connection = ConnectionFactory.createConnection(settings);
                var admin = connection.getAdmin();
                var table = connection.getTable(path)) {
            if (!table.getTableInfo().isPartitioned()) {
                print(admin, table, "-", null, admin.getLatestKvSnapshots(path).get());
                return;
            }
            for (var each : admin.listPartitionInfos(path).get()) {
                var name = each.getPartitionName();
                var found = admin.getLatestKvSnapshots(path, name).get();
                print(admin, table, name, each.getPartitionId(), found);
            }
        }
    }

    private static void print(Admin admin, Table table, String name, Long partition, KvSnapshots found)
            throws Exception {
        for (var number : found.getBucketIds()) {
            if (found.getSnapshotId(number).isEmpty()) {
                continue;
            }
            var snapshot = found.getSnapshotId(number).getAsLong();
            var bucket = new TableBucket(found.getTableId(), partition, number);
            var offset = admin.getKvSnapshotMetadata(bucket, snapshot).get().getLogOffset();
            System.out.println(String.join("\t", "bucket", name, "" + number, "" + snapshot, "" + offset));
            rows(table, bucket, snapshot);
        }
    }

    private static void rows(Table table, TableBucket bucket, long snapshot) throws Exception {
        var getters = new ArrayList<InternalRow.FieldGetter>();
        for (var type : table.getTableInfo().getRowType().getChildren()) {
            getters.add(InternalRow.createFieldGetter(type, getters.size()));
        }
        try (var scanner = table.newScan().createBatchScanner(bucket, snapshot)) {
            for (var rows = scanner.pollBatch(PATIENCE); rows != null; rows = scanner.pollBatch(PATIENCE)) {
                while (rows.hasNext()) {
                    var row = rows.next();
                    var words = new ArrayList<String>(List.of("row"));
                    getters.forEach(each -> words.add("" + each.getFieldOrNull(row)));
                    System.out.println(String.join("\t", words));
                }
            }
        }
    }
}
