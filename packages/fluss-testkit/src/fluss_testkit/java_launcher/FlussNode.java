// Hosts any of the three Fluss roles in one JVM: ZooKeeper, coordinator, tablet server.
//
//   java -cp <here>:<fluss-server jar> FlussNode [zookeeper <properties file>]
//                                                [coordinator <config dir>] [tablet <config dir>]...
//
// Unlike the jar's own main classes it runs several roles in one process, stops them in order
// (tablet servers, coordinator, ZooKeeper), and stops when the parent ends. The parent holds the
// other end of standard input: the line "stop" requests a graceful stop; end of file without it
// means that the parent ended. The parent also decides paths and ports, and waits until the
// cluster is ready.

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.config.GlobalConfiguration;
import org.apache.fluss.server.coordinator.CoordinatorServer;
import org.apache.fluss.server.tablet.TabletServer;
import org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServer;

public final class FlussNode {

    /** The JVM is halted when a stop takes longer, so that no server outlives its parent. */
    private static final long STOP_DEADLINE_MS = 20_000;

    /** The limit after the end of the parent; long enough to keep acknowledged rows. */
    private static final long ORPHAN_DEADLINE_MS = 8_000;

    /** All processes of a cluster notice the end of the parent; these delays order their stops. */
    private static final long ORPHAN_STEP_MS = 1_500;

    /** A running role. */
    private interface Role {
        void close() throws Exception;
    }

    /** The started roles, newest first, which is the order of closing. */
    private final Deque<Role> roles = new ArrayDeque<>();

    /** How many other kinds of role must stop before those of this process. */
    private int rank = 2;

    private boolean stopping;

    public static void main(String[] args) throws Exception {
        if (args.length == 0 || args.length % 2 != 0) {
            System.err.println("usage: FlussNode (zookeeper|coordinator|tablet) <config> ...");
            System.exit(64);
        }
        FlussNode node = new FlussNode();
        // Before the servers start, because the parent may end meanwhile.
        Thread watcher = new Thread(node::watchParent, "parent");
        watcher.setDaemon(true);
        watcher.start();
        try {
            for (int i = 0; i < args.length; i += 2) {
                node.start(args[i], args[i + 1]);
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            node.stop(1, ORPHAN_DEADLINE_MS);
        }
        Thread.currentThread().join();
    }

    private void start(String name, String config) throws Exception {
        switch (name) {
            case "zookeeper":
                add(startZooKeeper(Path.of(config)), 2);
                break;
            case "coordinator":
                WatchedCoordinator coordinator = new WatchedCoordinator(load(config));
                coordinator.start();
                stopWith(coordinator.ended());
                add(coordinator::close, 1);
                break;
            case "tablet":
                WatchedTablet tablet = new WatchedTablet(load(config));
                tablet.start();
                stopWith(tablet.ended());
                add(tablet::close, 0);
                break;
            default:
                throw new IllegalArgumentException("unknown role: " + name);
        }
    }

    private synchronized void add(Role role, int roleRank) throws InterruptedException {
        if (stopping) {
            // Too late to be closed with the others; the JVM is about to end.
            wait();
        }
        roles.push(role);
        rank = Math.min(rank, roleRank);
    }

    private static Configuration load(String directory) {
        return GlobalConfiguration.loadConfiguration(directory, null);
    }

    private static Role startZooKeeper(Path file) throws Exception {
        Properties properties = new Properties();
        try (InputStream in = Files.newInputStream(file)) {
            properties.load(in);
        }
        File data = new File(properties.getProperty("dataDir"));
        ZooKeeperServer server =
                new ZooKeeperServer(data, data, Integer.parseInt(properties.getProperty("tickTime")));
        server.setMaxSessionTimeout(
                Integer.parseInt(properties.getProperty("maxSessionTimeout")));
        InetSocketAddress address =
                new InetSocketAddress(
                        InetAddress.getByName(properties.getProperty("clientPortAddress")),
                        Integer.parseInt(properties.getProperty("clientPort")));
        NIOServerCnxnFactory connections = new NIOServerCnxnFactory();
        int unlimited = 0;
        int defaultBacklog = -1;
        connections.configure(address, unlimited, defaultBacklog, false);
        connections.startup(server, true);
        return connections::shutdown; // which shuts the server down, too
    }

    private void watchParent() {
        boolean requested = false;
        try (BufferedReader in =
                new BufferedReader(
                        new InputStreamReader(System.in, StandardCharsets.US_ASCII))) {
            String line = in.readLine();
            while (line != null && !requested) {
                requested = line.equals("stop");
                line = requested ? null : in.readLine();
            }
        } catch (IOException broken) {
            // A broken pipe means that the parent ended.
        }
        if (!requested) {
            pause(rankNow() * ORPHAN_STEP_MS);
        }
        stop(0, requested ? STOP_DEADLINE_MS : ORPHAN_DEADLINE_MS);
    }

    private synchronized int rankNow() {
        return rank;
    }

    /** Stops the process when a server ends with a fatal error. */
    private void stopWith(CompletableFuture<?> ended) {
        ended.whenComplete(
                (result, failure) ->
                        new Thread(() -> stop(1, ORPHAN_DEADLINE_MS), "ended").start());
    }

    /** Closes all roles in order and ends the JVM; only the first call has an effect. */
    private void stop(int status, long deadlineMs) {
        synchronized (this) {
            if (stopping) {
                return;
            }
            stopping = true;
        }
        Thread deadline =
                new Thread(
                        () -> {
                            pause(deadlineMs);
                            Runtime.getRuntime().halt(status == 0 ? 1 : status);
                        },
                        "stop-deadline");
        deadline.setDaemon(true);
        deadline.start();
        while (!roles.isEmpty()) {
            try {
                roles.pop().close();
            } catch (Throwable failure) {
                failure.printStackTrace();
            }
        }
        System.exit(status);
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Exposes the end of the coordinator. */
    private static final class WatchedCoordinator extends CoordinatorServer {
        WatchedCoordinator(Configuration configuration) {
            super(configuration);
        }

        CompletableFuture<?> ended() {
            return getTerminationFuture();
        }
    }

    /** Exposes the end of the tablet server. */
    private static final class WatchedTablet extends TabletServer {
        WatchedTablet(Configuration configuration) {
            super(configuration);
        }

        CompletableFuture<?> ended() {
            return getTerminationFuture();
        }
    }
}
