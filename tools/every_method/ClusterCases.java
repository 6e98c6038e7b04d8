// Offsets, counts, snapshots, lakes, producers, access control, settings and servers.

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.admin.OffsetSpec;
import org.apache.fluss.cluster.rebalance.GoalType;
import org.apache.fluss.cluster.rebalance.ServerTag;
import org.apache.fluss.config.cluster.AlterConfig;
import org.apache.fluss.config.cluster.AlterConfigOpType;
import org.apache.fluss.security.acl.AccessControlEntry;
import org.apache.fluss.security.acl.AccessControlEntryFilter;
import org.apache.fluss.security.acl.AclBinding;
import org.apache.fluss.security.acl.AclBindingFilter;
import org.apache.fluss.security.acl.FlussPrincipal;
import org.apache.fluss.security.acl.OperationType;
import org.apache.fluss.security.acl.PermissionType;
import org.apache.fluss.security.acl.Resource;
import org.apache.fluss.security.acl.ResourceFilter;
import org.apache.fluss.security.acl.ResourceType;

final class ClusterCases extends Cases {
    ClusterCases(Recorder recorder, Connection connection, String database) {
        super(recorder, connection, database);
    }

    @Override
    void run() throws Exception {
        offsetsAndCounts();
        snapshots();
        lakes();
        producers();
        access();
        settings();
        servers();
    }

    private static final int WAIT_S = 30;
    private static final long NO_TABLE = 999_999L;
    private static final int NO_SERVER = 1_000;
    // A server whose interval is a second has a snapshot within this time, if it makes any.
    private static final int SNAPSHOT_POLLS_MAX = 10;

    // --- offsets, snapshots, lakes, producers --------------------------------------------------------

    private void offsetsAndCounts() {
        var both = List.of(0, 1);
        step("first offsets", () -> admin.listOffsets(keyed, both, new OffsetSpec.EarliestSpec()).all());
        step("last offsets", () -> got(admin.listOffsets(log, both, new OffsetSpec.LatestSpec()).all(),
                found -> found.values().stream().mapToLong(Long::longValue).sum()));
        step("offsets since a time", () -> got(admin.listOffsets(log, both,
                new OffsetSpec.TimestampSpec(1L)).all(), TreeMap::new));
        step("offsets since a future time", () -> admin.listOffsets(log, both,
                new OffsetSpec.TimestampSpec(System.currentTimeMillis() + 3_600_000L)).all());
        step("offsets of a partition", () -> got(admin.listOffsets(days, "d1", both,
                new OffsetSpec.LatestSpec()).all(), found -> found.values().stream().mapToLong(each -> each).sum()));
        step("offsets of a missing partition", () -> admin.listOffsets(days, "d7", both,
                new OffsetSpec.LatestSpec()).all());
        step("rows of a table with a key", () -> got(admin.getTableStats(keyed), found -> found.getRowCount()));
        step("rows of a log", () -> got(admin.getTableStats(log), found -> found.getRowCount()));
        step("rows of partitions", () -> got(admin.getTableStats(days), found -> found.getRowCount()));
        step("rows of a missing table", () -> admin.getTableStats(missing));
    }

    private void snapshots() throws Exception {
        step("KV snapshots of a missing table", () -> admin.getLatestKvSnapshots(missing));
        step("KV snapshots of a log table", () -> admin.getLatestKvSnapshots(log));
        step("KV snapshots of a partition", () -> got(admin.getLatestKvSnapshots(days, "d1"),
                found -> found.getBucketIds()));
        step("KV snapshots of a missing partition", () -> admin.getLatestKvSnapshots(days, "d7"));
        step("KV snapshots", () -> got(admin.getLatestKvSnapshots(keyed), found -> found.getBucketIds()));
        step("an unknown KV snapshot", () -> admin.getKvSnapshotMetadata(bucket(keyed, 0), 99L));
        // Where there is none, a number is asked for that is not there.
        var newest = newestSnapshot();
        step("the newest KV snapshot", () -> got(admin.getKvSnapshotMetadata(bucket(keyed, 0), newest), found ->
                (found.getSnapshotFiles().isEmpty() ? "no files" : "files") + " " + (found.getLogOffset() > 0)));
        step("read the newest KV snapshot", () -> with(keyed, table -> read(
                table.newScan().createBatchScanner(bucket(keyed, 0), newest), 1).size() > 0));
        step("read an unknown KV snapshot", () -> with(keyed, table -> read(
                table.newScan().createBatchScanner(bucket(keyed, 0), 99L), 1)));
        step("active KV snapshots", () -> {
            var found = got(admin.listKvSnapshots(bucket(keyed, 0).getTableId(), null),
                    each -> each.getSnapshotIdsByBucket());
            return found.isEmpty() ? "none yet" : "some";
        });
        step("active KV snapshots of a missing table", () -> admin.listKvSnapshots(NO_TABLE, null));
        step("manifests of remote logs", () -> got(admin.listRemoteLogManifests(bucket(log, 0).getTableId(), null),
                found -> found.size()));
        step("manifests of remote logs of a missing table", () -> got(
                admin.listRemoteLogManifests(NO_TABLE, null), found -> found.size()));
        step("a lease of KV snapshots", () -> {
            var lease = admin.createKvSnapshotLease("lease-1", 60_000L);
            return lease.leaseId() + " " + lease.leaseDurationMs();
        });
        var lease = admin.createKvSnapshotLease("lease-2", 60_000L);
        step("lease a missing KV snapshot", () -> got(lease.acquireSnapshots(Map.of(bucket(keyed, 0), 99L)),
                found -> "unavailable " + found.getUnavailableSnapshots().size()));
        step("renew a lease", () -> lease.renew());
        step("release KV snapshots", () -> lease.releaseSnapshots(Set.of(bucket(keyed, 0))));
        step("drop a lease", () -> lease.dropLease());
    }

    private long newestSnapshot() throws Exception {
        var none = OptionalLong.empty();
        var found = none;
        for (int times = 0; times < SNAPSHOT_POLLS_MAX && found.equals(none); times++) {
            Thread.sleep(POLL.toMillis());
            found = got(admin.getLatestKvSnapshots(keyed), each -> each.getSnapshotId(0));
        }
        return found.orElse(0L);
    }

    private void lakes() {
        step("the newest lake snapshot", () -> admin.getLatestLakeSnapshot(keyed));
        step("a lake snapshot by its id", () -> admin.getLakeSnapshot(keyed, 7L));
        step("the readable lake snapshot", () -> admin.getReadableLakeSnapshot(keyed));
        step("the lake snapshot of a missing table", () -> admin.getLatestLakeSnapshot(missing));
    }

    private void producers() throws Exception {
        var offsets = Map.of(bucket(keyed, 0), 3L, bucket(keyed, 1), 4L);
        step("register offsets", () -> admin.registerProducerOffsets(database, offsets));
        step("register offsets again", () -> admin.registerProducerOffsets(database, Map.of(bucket(keyed, 0), 9L)));
        step("register no offsets", () -> admin.registerProducerOffsets(database + "-none", Map.of()));
        step("register offsets under a bad name", () -> admin.registerProducerOffsets("a b", offsets));
        step("registered offsets", () -> got(admin.getProducerOffsets(database), found ->
                new TreeSet<>(found.getTableOffsets().values().iterator().next().values())));
        step("offsets that are not registered", () -> admin.getProducerOffsets("unknown"));
        step("delete offsets", () -> admin.deleteProducerOffsets(database));
        step("delete offsets again", () -> admin.deleteProducerOffsets(database));
    }

    // --- access, settings, servers -------------------------------------------------------------------

    private void access() {
        var alice = new FlussPrincipal("alice", "User");
        var entry = new AccessControlEntry(alice, "*", OperationType.READ, PermissionType.ALLOW);
        var ofTable = new AclBinding(Resource.table(log), entry);
        var ofDatabase = new AclBinding(Resource.database(database), entry);
        var aboutAlice = new AclBindingFilter(ResourceFilter.ANY, new AccessControlEntryFilter(
                alice, null, OperationType.ANY, PermissionType.ANY));
        var aboutTables = new AclBindingFilter(new ResourceFilter(ResourceType.TABLE, null), AccessControlEntryFilter.ANY);
        step("entries before any", () -> got(admin.listAcls(aboutAlice), Collection::size));
        step("new entries", () -> admin.createAcls(List.of(ofTable, ofDatabase)).all());
        step("an entry that exists", () -> admin.createAcls(List.of(ofTable)).all());
        step("entries of a user", () -> settled(() -> got(admin.listAcls(aboutAlice), Collection::size), 2));
        step("entries of tables", () -> got(admin.listAcls(aboutTables), Collection::size));
        step("drop entries", () -> got(admin.dropAcls(List.of(aboutTables, aboutAlice)).all(), Collection::size));
        step("drop entries again", () -> got(admin.dropAcls(List.of(aboutAlice)).all(), Collection::size));
        step("entries after all", () -> settled(() -> got(admin.listAcls(AclBindingFilter.ANY), Collection::size), 0));
    }

    private void settings() {
        configure("a setting", "kv.snapshot.interval", "11 min", AlterConfigOpType.SET);
        step("settings", () -> settled(() -> got(admin.describeClusterConfigs(), found -> found.stream()
                .filter(each -> each.key().equals("kv.snapshot.interval"))
                .map(each -> each.value() + " " + each.source()).collect(Collectors.joining())),
                "11 min DYNAMIC_SERVER_CONFIG"));
        configure("a setting away", "kv.snapshot.interval", null, AlterConfigOpType.DELETE);
        configure("a fixed setting", "bind.listeners", "x", AlterConfigOpType.SET);
        configure("a bad value", "kv.snapshot.interval", "blue", AlterConfigOpType.SET);
        configure("more of a scalar", "kv.snapshot.interval", "1 s", AlterConfigOpType.APPEND);
        configure("less of a scalar", "kv.snapshot.interval", "1 s", AlterConfigOpType.SUBTRACT);
        configure("a user more", "security.sasl.plain.credentials", "zoe:secret", AlterConfigOpType.APPEND);
        configure("the same user more", "security.sasl.plain.credentials", "zoe:other", AlterConfigOpType.APPEND);
        configure("a user less", "security.sasl.plain.credentials", "zoe:secret", AlterConfigOpType.SUBTRACT);
        step("configure nothing", () -> admin.alterClusterConfigs(List.of()));
    }

    private void configure(String name, String key, String value, AlterConfigOpType operation) {
        step("configure: " + name, () -> admin.alterClusterConfigs(List.of(new AlterConfig(key, value, operation))));
    }

    private void servers() throws Exception {
        step("servers", () -> got(admin.getServerNodes(), found -> found.size() >= 1));
        step("health", () -> settled(() -> got(admin.getClusterHealth(), found -> found.getStatus() + " "
                + (found.getNumReplicas() == found.getInSyncReplicas()) + " "
                + (found.getNumLeaderReplicas() == found.getActiveLeaderReplicas())), "GREEN true true"));
        var all = admin.getServerNodes().get().stream().filter(each -> each.serverType().name().contains("TABLET"))
                .map(each -> each.id()).toList();
        var offline = ServerTag.PERMANENT_OFFLINE;
        step("tag a server", () -> admin.addServerTag(all, ServerTag.TEMPORARY_OFFLINE));
        step("tag a server again", () -> admin.addServerTag(all, ServerTag.TEMPORARY_OFFLINE));
        step("tag a server otherwise", () -> admin.addServerTag(all, offline));
        step("tag an unknown server", () -> admin.addServerTag(List.of(NO_SERVER), offline));
        step("untag a server otherwise", () -> admin.removeServerTag(all, offline));
        step("untag a server", () -> admin.removeServerTag(all, ServerTag.TEMPORARY_OFFLINE));
        step("untag a server again", () -> admin.removeServerTag(all, ServerTag.TEMPORARY_OFFLINE));
        step("untag an unknown server", () -> admin.removeServerTag(List.of(NO_SERVER), offline));
        step("tag a rack", () -> admin.addServerTagByRack(List.of("nowhere"), offline));
        step("untag a rack", () -> admin.removeServerTagByRack(List.of("nowhere"), offline));
        step("tag no rack", () -> admin.addServerTagByRack(List.of(), offline));
        step("progress before any rebalance", () -> got(admin.listRebalanceProgress(null), found -> found.isPresent()));
        step("cancel before any rebalance", () -> admin.cancelRebalance(null));
        step("rebalance", () -> got(admin.rebalance(List.of(
                GoalType.REPLICA_DISTRIBUTION, GoalType.LEADER_DISTRIBUTION)), found -> found.length() > 0));
        step("progress", () -> settled(() -> got(admin.listRebalanceProgress(null), found -> found.map(each ->
                each.status() + " " + each.formatAsPercentage()).orElse("none")), "COMPLETED NONE"));
        step("progress of an unknown rebalance", () -> admin.listRebalanceProgress("unknown"));
        step("rebalance without goals", () -> got(admin.rebalance(List.of()), found -> found.length() > 0));
        step("cancel", () -> admin.cancelRebalance(null));
        step("cancel an unknown rebalance", () -> admin.cancelRebalance("unknown"));
    }
}
