// Tables and databases are dropped, and the connection is closed.

import java.time.Duration;
import org.apache.fluss.client.Connection;

final class LastCases extends Cases {
    LastCases(Recorder recorder, Connection connection, String database) {
        super(recorder, connection, database);
    }

    @Override
    void run() throws Exception {
        drops();
        close();
    }

    private void drops() {
        step("drop a table", () -> admin.dropTable(summed, false));
        step("drop a missing table", () -> admin.dropTable(missing, false));
        step("drop a missing table, ignored", () -> admin.dropTable(missing, true));
        step("drop a database with tables", () -> admin.dropDatabase(database, false, false));
        step("drop a database and its tables", () -> admin.dropDatabase(database, false, true));
        step("drop a missing database", () -> admin.dropDatabase(database, false, true));
        step("drop a missing database, ignored", () -> admin.dropDatabase(database, true, true));
    }

    private void close() {
        step("close", () -> {
            admin.close();
            connection.getConfiguration();
            connection.close(Duration.ofSeconds(5));
            connection.close();
            return "closed";
        });
    }
}
