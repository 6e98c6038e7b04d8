// Calls every public method of Apache Fluss's own Java client of 1.0.0: Admin and leases of KV snapshots,
// Connection, Table, Append, Upsert, Lookup, Scan, their typed forms, and readers and writers of many tables.
// tests/cluster/server/test_every_method.py runs it on a server, and compares what it prints with what servers of
// Fluss have answered (docs/proofs/java-client.md).
//
//   javac -cp fluss-client-1.0.0.jar -d classes tools/every_method/*.java
//   java -cp fluss-client-1.0.0.jar:classes EveryMethod BOOTSTRAP DATABASE USER PASSWORD
//
// (Java 17 or newer.) The user may do everything, and the database does not exist. The program prints a line of four
// fields, with a tab between them, for each case: its name, the methods that it called, `ok` or the error's code
// (`local` for one that the client raises itself), and the essence of the answer or the class of the error. The
// methods are recorded by proxies around the client's interfaces, so a line `never` names each that was not called.

import java.util.List;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;

public final class EveryMethod {
    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(arguments[0].split(",")));
        settings.setString("client.security.protocol", "sasl");
        settings.setString("client.security.sasl.mechanism", "PLAIN");
        settings.setString("client.security.sasl.username", arguments[2]);
        settings.setString("client.security.sasl.password", arguments[3]);
        var recorder = new Recorder();
        var connection = recorder.recorded(Connection.class, ConnectionFactory.createConnection(settings));
        var database = arguments[1];
        new CatalogCases(recorder, connection, database).run();
        new RowCases(recorder, connection, database).run();
        new ClusterCases(recorder, connection, database).run();
        new LastCases(recorder, connection, database).run();
        recorder.printMissing();
        System.exit(0); // threads of the client may live on
    }
}
