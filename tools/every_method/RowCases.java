// Rows written, looked up, polled and read, of one table and of many, as rows and as objects.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.table.scanner.log.LogScanner;
import org.apache.fluss.client.table.scanner.log.MultiTableLogScanner;
import org.apache.fluss.client.table.writer.MultiTableWriteRecord;
import org.apache.fluss.predicate.PredicateBuilder;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.rpc.protocol.MergeMode;

final class RowCases extends Cases {
    private static final int WAIT_S = 30;

    public static final class Item {
        public Integer id;
        public String name;

        public Item() {}

        Item(int id, String name) {
            this.id = id;
            this.name = name;
        }
    }

    public static final class Key {
        public Integer id;

        public Key() {}
    }

    public static final class DayItem {
        public String day;
        public Long id;
        public String x;

        public DayItem() {}
    }

    RowCases(Recorder recorder, Connection connection, String database) {
        super(recorder, connection, database);
    }

    @Override
    void run() throws Exception {
        appends();
        upserts();
        lookups();
        logScans();
        batchScans();
        manyTables();
    }

    // --- writes ------------------------------------------------------------------------------------

    private void appends() {
        step("append rows", () -> with(log, table -> {
            var writer = table.newAppend().createWriter();
            var futures = List.of(writer.append(item(1, "one")), writer.append(item(2, "two")));
            writer.flush();
            futures.forEach(CompletableFuture::join);
            return "appended 2";
        }));
        step("append objects", () -> with(log, table -> {
            var writer = table.newAppend().createTypedWriter(Item.class);
            var future = writer.append(new Item(3, "three"));
            writer.flush();
            future.join();
            return "appended 1";
        }));
        step("append to a partition", () -> with(dayLog, table -> {
            var writer = table.newAppend().createWriter();
            writer.append(dayRow("d1", 1));
            writer.flush();
            return "appended 1";
        }));
        step("append to a partition that it makes", () -> with(dayLog, table -> {
            var writer = table.newAppend().createWriter();
            var future = writer.append(dayRow("d9", 1));
            writer.flush();
            future.join();
            return counts(admin.listPartitionInfos(dayLog).get());
        }));
        step("append to a table with a key", () -> with(keyed, table -> table.newAppend().createWriter()));
        step("write a missing table", () -> connection.getTable(missing));
    }

    private void upserts() {
        step("upsert and delete rows", () -> with(keyed, table -> {
            var writer = table.newUpsert().createWriter();
            for (int id = 1; id <= 5; id++) {
                writer.upsert(item(id, "row " + id));
            }
            var deleted = writer.delete(item(5, null));
            writer.flush();
            deleted.join();
            return "written";
        }));
        step("upsert and delete objects", () -> with(keyed, table -> {
            var writer = table.newUpsert().createTypedWriter(Item.class);
            var first = writer.upsert(new Item(6, "six"));
            var second = writer.delete(new Item(4, null));
            writer.flush();
            return first.join().getLogEndOffset() > 0 && second.join().getLogEndOffset() > 0;
        }));
        step("upsert some columns by place", () -> with(prefixed, table -> {
            var writer = table.newUpsert().partialUpdate(new int[] {0, 1, 2}).createWriter();
            writer.upsert(GenericRow.of(1, text("a"), text("x1"), null));
            writer.upsert(GenericRow.of(1, text("b"), text("x2"), null)).join();
            return "written 2";
        }));
        step("upsert some columns by name", () -> with(prefixed, table -> {
            var writer = table.newUpsert().partialUpdate("a", "b", "more").createWriter();
            writer.upsert(GenericRow.of(1, text("b"), null, text("m"))).join();
            return "written 1";
        }));
        step("upsert without key columns", () -> with(prefixed, table ->
                table.newUpsert().partialUpdate("more").createWriter()));
        for (var mode : MergeMode.values()) {
            step("upsert in mode " + mode, () -> with(summed, table -> {
                var writer = table.newUpsert().mergeMode(mode).createWriter();
                writer.upsert(GenericRow.of(1, 10L, 1L)).join();
                writer.upsert(GenericRow.of(1, 20L, 1L)).join();
                var found = table.newLookup().createLookuper().lookup(GenericRow.of(1)).get().getSingletonRow();
                return found.getLong(1) + " " + found.getLong(2);
            }));
        }
        step("upsert into a partition", () -> with(days, table -> {
            var writer = table.newUpsert().createWriter();
            for (long id = 0; id < 10; id++) {
                writer.upsert(dayRow("d1", id));
            }
            writer.flush();
            return "written 10";
        }));
        step("upsert into a log table", () -> with(log, table -> table.newUpsert().createWriter()));
    }

    // --- reads -------------------------------------------------------------------------------------

    private void lookups() {
        step("look up rows", () -> with(keyed, table -> {
            var lookuper = table.newLookup().createLookuper();
            var found = new ArrayList<String>();
            for (int id : new int[] {1, 4, 5, 6}) {
                found.add(rows(lookuper.lookup(GenericRow.of(id)).get(), 1));
            }
            return found;
        }));
        step("look up by objects", () -> with(keyed, table -> {
            var key = new Key();
            key.id = 2;
            return rows(table.newLookup().createTypedLookuper(Key.class).lookup(key).get(), 1);
        }));
        step("look up by a prefix", () -> with(prefixed, table -> {
            var lookuper = table.newLookup().lookupBy("a").createLookuper();
            return rows(lookuper.lookup(GenericRow.of(1)).get(), 1) + rows(lookuper.lookup(GenericRow.of(2)).get(), 1);
        }));
        step("look up by a list of columns", () -> with(prefixed, table -> rows(
                table.newLookup().lookupBy(List.of("a")).createLookuper().lookup(GenericRow.of(1)).get(), 3)));
        step("look up by a column that is no prefix", () -> with(prefixed, table ->
                table.newLookup().lookupBy("x").createLookuper()));
        step("look up and insert", () -> with(numbered, table -> {
            var lookuper = table.newLookup().enableInsertIfNotExists().createLookuper();
            var first = lookuper.lookup(GenericRow.of(text("a"))).get().getSingletonRow().getLong(1);
            var second = lookuper.lookup(GenericRow.of(text("b"))).get().getSingletonRow().getLong(1);
            var again = lookuper.lookup(GenericRow.of(text("a"))).get().getSingletonRow().getLong(1);
            return first + " " + second + " " + again;
        }));
        step("look up in partitions", () -> with(days, table -> {
            var lookuper = table.newLookup().createLookuper();
            return rows(lookuper.lookup(GenericRow.of(text("d1"), 3L)).get(), 2)
                    + rows(lookuper.lookup(GenericRow.of(text("d7"), 3L)).get(), 2);
        }));
        step("look up in a log table", () -> with(log, table -> table.newLookup().createLookuper()));
    }

    private void logScans() {
        step("poll a log", () -> with(log, table -> {
            try (var scanner = table.newScan().createLogScanner()) {
                scanner.subscribeFromBeginning(0);
                scanner.subscribe(1, LogScanner.EARLIEST_OFFSET);
                var found = polled(scanner, 3, 1);
                scanner.unsubscribe(0);
                scanner.wakeup();
                return found;
            }
        }));
        step("poll some columns", () -> with(log, table -> {
            try (var scanner = table.newScan().project(new int[] {1}).createLogScanner()) {
                scanner.subscribeFromBeginning(0);
                scanner.subscribeFromBeginning(1);
                return polled(scanner, 3, 0);
            }
        }));
        step("poll by a filter", () -> with(log, table -> {
            var filter = new PredicateBuilder(table.getTableInfo().getRowType()).greaterThan(0, 0);
            try (var scanner = table.newScan().project(List.of("name")).filter(filter).createLogScanner()) {
                scanner.subscribeFromBeginning(0);
                scanner.subscribeFromBeginning(1);
                return polled(scanner, 3, 0);
            }
        }));
        step("poll a changelog", () -> with(keyed, table -> {
            try (var scanner = table.newScan().createLogScanner()) {
                scanner.subscribeFromBeginning(0);
                scanner.subscribeFromBeginning(1);
                var found = new TreeMap<String, Integer>();
                for (int count = 0, polls = 0; count < 8 && polls < POLLS_MAX; polls++) {
                    for (var record : scanner.poll(POLL)) {
                        found.merge(record.getChangeType().shortString(), 1, Integer::sum);
                        count++;
                    }
                }
                return found;
            }
        }));
        step("poll a partition", () -> with(dayLog, table -> {
            var partition = partition(dayLog, "d1");
            try (var scanner = table.newScan().createLogScanner()) {
                scanner.subscribe(partition, 0, 0L);
                scanner.subscribeFromBeginning(partition, 1);
                scanner.subscribeFromBeginning(partition, 2);
                var found = polled(scanner, 1, 2);
                scanner.unsubscribe(partition, 0);
                return found;
            }
        }));
        step("poll objects", () -> with(log, table -> {
            try (var scanner = table.newScan().createTypedLogScanner(Item.class)) {
                scanner.subscribeFromBeginning(0);
                scanner.subscribe(1, 0L);
                var found = new TreeSet<String>();
                for (int polls = 0; found.size() < 3 && polls < POLLS_MAX; polls++) {
                    scanner.poll(POLL).forEach(each -> found.add(each.getValue().id + each.getValue().name));
                }
                scanner.wakeup();
                return found;
            }
        }));
        step("poll objects of partitions", () -> with(dayLog, table -> {
            var partition = partition(dayLog, "d1");
            try (var scanner = table.newScan().createTypedLogScanner(DayItem.class)) {
                scanner.subscribe(partition, 0, 0L);
                scanner.subscribeFromBeginning(partition, 1);
                scanner.subscribeFromBeginning(partition, 2);
                var found = new TreeSet<String>();
                for (int polls = 0; found.isEmpty() && polls < POLLS_MAX; polls++) {
                    scanner.poll(POLL).forEach(each -> found.add(each.getValue().x));
                }
                scanner.unsubscribe(partition, 1);
                return found;
            }
        }));
        step("poll after the end", () -> with(log, table -> {
            try (var scanner = table.newScan().createLogScanner()) {
                scanner.subscribe(0, 1_000L);
                return scanner.poll(Duration.ofSeconds(5)).count();
            }
        }));
    }

    private void batchScans() {
        step("read the first rows of a bucket", () -> with(keyed, table -> {
            var found = new TreeSet<String>();
            for (int bucket = 0; bucket < 2; bucket++) {
                found.addAll(read(table.newScan().limit(10).createBatchScanner(bucket(keyed, bucket)), 1));
            }
            return found;
        }));
        step("read the last rows of a log", () -> with(log, table -> {
            var found = new TreeSet<String>();
            for (int bucket = 0; bucket < 2; bucket++) {
                found.addAll(read(table.newScan().limit(10).createBatchScanner(bucket(log, bucket)), 1));
            }
            return found;
        }));
        step("read a bucket without a limit", () -> with(keyed, table -> read(
                table.newScan().createBatchScanner(bucket(keyed, 0)), 1).size() > 0));
        step("read a whole table", () -> with(keyed, table -> read(table.newScan().createBatchScanner(), 1)));
        step("read some columns of all partitions", () -> with(days, table -> read(
                table.newScan().project(List.of("x")).createBatchScanner(), 0)));
        step("read a whole log", () -> with(log, table -> read(table.newScan().createBatchScanner(), 1)));
        step("read a missing bucket", () -> with(keyed, table -> read(
                table.newScan().limit(1).createBatchScanner(bucket(keyed, 7)), 1)));
    }

    private void manyTables() {
        step("write many tables", () -> {
            try (var writer = connection.getMultiTable().newMultiTableWrite().createWriter()) {
                var futures = List.of(
                        writer.write(MultiTableWriteRecord.forAppend(log, item(10, "ten"), 1)),
                        writer.write(MultiTableWriteRecord.forUpsert(keyed, item(10, "ten"), 1)),
                        writer.write(MultiTableWriteRecord.forDelete(keyed, item(6, null), 1)));
                writer.flush();
                futures.forEach(CompletableFuture::join);
                return "written 3";
            }
        });
        step("write a wrong kind of row", () -> {
            try (var writer = connection.getMultiTable().newMultiTableWrite().createWriter()) {
                var future = writer.write(MultiTableWriteRecord.forUpsert(log, item(10, "ten"), 1));
                writer.flush();
                return future.get(WAIT_S, TimeUnit.SECONDS);
            }
        });
        step("poll many tables", () -> {
            var partition = partition(dayLog, "d1");
            try (var scanner = connection.getMultiTable().newMultiTableScan().createLogScanner()) {
                for (int bucket = 0; bucket < 2; bucket++) {
                    scanner.subscribe(log, bucket, 0L);
                    scanner.subscribeFromBeginning(keyed, bucket);
                }
                scanner.subscribe(dayLog, partition, 0, MultiTableLogScanner.EARLIEST_OFFSET);
                scanner.subscribeFromBeginning(dayLog, partition, 1);
                scanner.subscribeFromBeginning(dayLog, partition, 2);
                var found = new TreeMap<String, Integer>();
                int count = 0;
                for (int polls = 0; count < 4 + 10 + 1 && polls < POLLS_MAX; polls++) {
                    for (var record : scanner.poll(POLL)) {
                        found.merge(record.getTablePath().getTableName(), 1, Integer::sum);
                        count++;
                    }
                }
                scanner.unsubscribe(log, 0);
                scanner.unsubscribe(dayLog, partition, 1);
                scanner.wakeup();
                return found;
            }
        });
    }
}
