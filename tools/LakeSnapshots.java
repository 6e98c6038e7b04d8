// Asks for the snapshots of a table's lake with Apache Fluss's own Java client, 0.9.1 or 1.0.0, and
// creates a table in the lake. tests/cluster/lake/test_java_clients.py runs it.
//
//   java -cp fluss-client-1.0.0.jar tools/LakeSnapshots.java BOOTSTRAP DATABASE TABLE ID NEW_TABLE
//
// (Java 17 or newer.) It prints one line for each question: the id of the snapshot and the offsets of
// its buckets, or the class of the refusal.

import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.client.metadata.LakeSnapshot;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.metadata.Schema;
import org.apache.fluss.metadata.TableDescriptor;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.types.DataTypes;

public final class LakeSnapshots {
    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(arguments[0].split(",")));
        var path = TablePath.of(arguments[1], arguments[2]);
        var id = Long.parseLong(arguments[3]);
        try (var connection = ConnectionFactory.createConnection(settings);
                var admin = connection.getAdmin()) {
            print("newest", admin.getLatestLakeSnapshot(path));
            print("by id", admin.getLakeSnapshot(path, id));
            print("another", admin.getLakeSnapshot(path, id + 1));
            print("readable", admin.getReadableLakeSnapshot(path));
            var made = TablePath.of(arguments[1], arguments[4]);
            var columns = Schema.newBuilder().column("id", DataTypes.BIGINT()).primaryKey("id").build();
            var described = TableDescriptor.builder()
                    .schema(columns)
                    .distributedBy(3, "id")
                    .property(ConfigOptions.TABLE_DATALAKE_ENABLED, true)
                    .build();
            admin.createTable(made, described, false).get();
            var info = admin.getTableInfo(made).get();
            System.out.println("enabled " + info.getTableConfig().isDataLakeEnabled());
            System.out.println("format " + info.getTableConfig().getDataLakeFormat().get());
            print("of the new one", admin.getLatestLakeSnapshot(made));
        }
        System.exit(0); // threads of the client may remain
    }

    private static void print(String question, CompletableFuture<LakeSnapshot> answer)
            throws InterruptedException {
        try {
            var found = answer.get();
            var offsets = new TreeMap<String, Long>();
            found.getTableBucketsOffset().forEach((bucket, offset) ->
                    offsets.put(bucket.getPartitionId() + "/" + bucket.getBucket(), offset));
            System.out.println(question + ": " + found.getSnapshotId() + " " + offsets);
        } catch (ExecutionException refusal) {
            var cause = refusal.getCause();
            System.out.println(question + ": " + cause.getClass().getSimpleName());
        }
    }
}
