// The Java oracle: answers, with Apache Fluss's own classes, what bytes a value becomes and what
// value bytes are. The tests in tests/java/oracle put the same questions to it and to our codecs;
// tools/record_golden.py writes its answers down for those who have no Java.
//
//   java --add-opens=java.base/java.nio=ALL-UNNAMED -cp fluss-server-0.9.1-incubating.jar \
//       tools/Oracle.java                                              (Java 17 or newer)
//
// It reads questions from stdin and writes answers to stdout until stdin ends. A frame is a
// big-endian int32 length and so many bytes. A question is the name of what is asked (writeUTF) and
// its arguments; an answer is the byte 0 and the result, or 1 and a stack trace in UTF-8. Numbers
// are big-endian; a byte string is an int32 length and its bytes; a list is an int32 count and its
// elements. The other end of this encoding is tests/support/differential/oracle_wire.py.
//
// A type is its root (writeUTF), a boolean "nullable", and what the root needs (see readType). A
// value is a boolean "not null" and then the physical value of fluss.model.types.data_type (see readValue):
// TIME and TIMESTAMP are counted in the unit of their precision, a DECIMAL is its unscaled value.
//
// What is not here: the statistics block of log batches (magic 1 and 2 of Fluss 1.0), which 0.9.1
// does not have.

import java.io.*;
import java.math.*;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import org.apache.fluss.bucketing.BucketingFunction;
import org.apache.fluss.compression.*;
import org.apache.fluss.config.*;
import org.apache.fluss.exception.*;
import org.apache.fluss.memory.*;
import org.apache.fluss.metadata.*;
import org.apache.fluss.record.*;
import org.apache.fluss.record.bytesview.BytesView;
import org.apache.fluss.row.*;
import org.apache.fluss.row.BinaryRow.BinaryRowFormat;
import org.apache.fluss.row.aligned.AlignedRow;
import org.apache.fluss.row.arrow.ArrowWriterPool;
import org.apache.fluss.row.compacted.CompactedRow;
import org.apache.fluss.row.decode.*;
import org.apache.fluss.row.encode.*;
import org.apache.fluss.row.indexed.IndexedRow;
import org.apache.fluss.row.serializer.*;
import org.apache.fluss.rpc.protocol.*;
import org.apache.fluss.server.kv.snapshot.CompletedSnapshotJsonSerde;
import org.apache.fluss.server.log.*;
import org.apache.fluss.server.log.remote.RemoteLogManifestJsonSerde;
import org.apache.fluss.shaded.arrow.org.apache.arrow.memory.RootAllocator;
import org.apache.fluss.types.*;
import org.apache.fluss.utils.PartitionUtils;
import org.apache.fluss.utils.json.*;

public final class Oracle {
    private static final int PAGE_BYTES = 64 * 1024;
    private static final long TABLE_ID = 1L;

    public static void main(String[] arguments) throws Exception {
        // Whatever a library prints must not land between two answers.
        var out = new DataOutputStream(new BufferedOutputStream(System.out));
        System.setOut(System.err);
        var in = new DataInputStream(new BufferedInputStream(System.in));
        while (true) {
            int length;
            try {
                length = in.readInt();
            } catch (EOFException ended) {
                return;
            }
            var question = new DataInputStream(new ByteArrayInputStream(in.readNBytes(length)));
            var result = new ByteArrayOutputStream();
            try {
                result.write(0);
                answer(question.readUTF(), question, new DataOutputStream(result));
                require(question.available() == 0, question.available() + " bytes left over");
            } catch (Throwable thrown) {
                var trace = new StringWriter();
                thrown.printStackTrace(new PrintWriter(trace));
                result.reset();
                result.write(1);
                result.writeBytes(trace.toString().getBytes(StandardCharsets.UTF_8));
            }
            out.writeInt(result.size());
            result.writeTo(out);
            out.flush();
        }
    }

    private static void answer(String asked, DataInputStream in, DataOutputStream out)
            throws Exception {
        switch (asked) {
            case "hello" -> hello(out);
            case "write_rows" -> writeRows(in, out);
            case "read_rows" -> readRows(in, out);
            case "write_keys" -> writeKeys(in, out);
            case "read_keys" -> readKeys(in, out);
            case "buckets" -> buckets(in, out);
            case "partition_texts" -> partitionTexts(in, out);
            case "partition_names" -> partitionNames(in, out);
            case "auto_partitions" -> autoPartitions(in, out);
            case "write_type_json" -> writeTypeJson(in, out);
            case "read_type_json" -> readTypeJson(in, out);
            case "json" -> json(in, out);
            case "write_log" -> writeLog(in, out);
            case "read_log" -> readLog(in, out);
            case "project_log" -> projectLog(in, out);
            case "write_kv" -> writeKv(in, out);
            case "read_kv" -> readKv(in, out);
            case "write_values" -> writeValues(in, out);
            case "read_values" -> readValues(in, out);
            case "write_index" -> writeIndex(in, out);
            case "look_up_index" -> lookUpIndex(in, out);
            case "enumerations" -> enumerations(out);
            default -> throw new IllegalArgumentException("there is no question '" + asked + "'");
        }
    }

    private static void hello(DataOutputStream out) throws IOException {
        out.writeUTF(String.valueOf(Errors.class.getPackage().getImplementationVersion()));
        out.writeUTF(System.getProperty("java.version"));
    }

    // --- rows -----------------------------------------------------------------------------------

    /** `fresh`: whether every nested value is encoded with a serializer of its own. */
    private static void writeRows(DataInputStream in, DataOutputStream out) throws Exception {
        var format = BinaryRowFormat.valueOf(in.readUTF());
        boolean fresh = in.readBoolean();
        var writer = new RowWriter(format, readRowType(in));
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            writeBytes(out, bytesOf(writer.write(readRow(in, writer.type), fresh)));
        }
    }

    private static void readRows(DataInputStream in, DataOutputStream out) throws Exception {
        var format = BinaryRowFormat.valueOf(in.readUTF());
        RowType type = readRowType(in);
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            byte[] bytes = readBytes(in);
            var segment = MemorySegment.wrap(bytes);
            if (format == BinaryRowFormat.ALIGNED) {
                var row = new AlignedRow(type.getFieldCount());
                row.pointTo(segment, 0, bytes.length);
                writeRow(out, type, row);
            } else {
                var decoder = RowDecoder.create(KvFormat.valueOf(format.name()), typesOf(type));
                writeRow(out, type, decoder.decode(segment, 0, bytes.length));
            }
        }
    }

    /**
     * Encodes rows of one type.
     *
     * <p>Fluss's serializers keep one array writer and use it again for the next array of the same
     * size without clearing it, so that the slot of a null element shows whatever stood there
     * before. Encoded one by one ("fresh"), null slots are zero and equal values have equal bytes.
     */
    private static final class RowWriter {
        final BinaryRowFormat format;
        final RowType type;
        final RowEncoder encoder;

        RowWriter(BinaryRowFormat format, RowType type) {
            this.format = format;
            this.type = type;
            this.encoder =
                    switch (format) {
                        case COMPACTED -> new CompactedRowEncoder(typesOf(type));
                        case INDEXED -> new IndexedRowEncoder(typesOf(type));
                        case ALIGNED -> new AlignedRowEncoder(typesOf(type));
                    };
        }

        BinaryRow write(GenericRow row) {
            return write(row, true);
        }

        BinaryRow write(GenericRow row, boolean fresh) {
            encoder.startNewRow();
            for (int i = 0; i < type.getFieldCount(); i++) {
                Object value = row.getField(i);
                encoder.encodeField(i, fresh ? freshly(type.getTypeAt(i), value) : value);
            }
            return encoder.finishRow();
        }

        private Object freshly(DataType type, Object value) {
            if (value == null) {
                return null;
            }
            return switch (type.getTypeRoot()) {
                case ARRAY -> {
                    DataType element = ((ArrayType) type).getElementType();
                    yield new ArraySerializer(element, format)
                            .toBinaryArray(freshElements(element, (GenericArray) value));
                }
                case MAP -> {
                    DataType keyType = ((MapType) type).getKeyType();
                    DataType valueType = ((MapType) type).getValueType();
                    var keys = freshElements(keyType, ((GenericMap) value).keyArray());
                    var values = freshElements(valueType, ((GenericMap) value).valueArray());
                    yield new MapSerializer(keyType, valueType, format)
                            .toBinaryMap(new TwoArrays(keys, values));
                }
                case ROW -> new RowWriter(format, (RowType) type).write((GenericRow) value);
                default -> value;
            };
        }

        private GenericArray freshElements(DataType element, InternalArray array) {
            Object[] elements = ((GenericArray) array).toObjectArray().clone();
            Arrays.setAll(elements, i -> freshly(element, elements[i]));
            return new GenericArray(elements);
        }
    }

    /** A map as the two arrays it is encoded from. */
    private record TwoArrays(GenericArray keyArray, GenericArray valueArray)
            implements InternalMap {
        @Override
        public int size() {
            return keyArray.size();
        }
    }

    // --- keys, buckets, partitions --------------------------------------------------------------

    private static void writeKeys(DataInputStream in, DataOutputStream out) throws Exception {
        boolean primary = in.readBoolean();
        DataLakeFormat lake = lakeFormat(in.readUTF());
        int version = in.readInt();
        boolean isDefaultBucketKey = in.readBoolean();
        RowType type = readRowType(in);
        List<String> keys = readTexts(in);
        var options = new Configuration();
        options.set(ConfigOptions.TABLE_KV_FORMAT_VERSION, version);
        if (lake != null) {
            options.set(ConfigOptions.TABLE_DATALAKE_FORMAT, lake);
        }
        var table = new TableConfig(options);
        KeyEncoder encoder =
                primary
                        ? KeyEncoder.ofPrimaryKeyEncoder(type, keys, table, isDefaultBucketKey)
                        : KeyEncoder.ofBucketKeyEncoder(type, keys, lake);
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            writeBytes(out, encoder.encodeKey(readRow(in, type)));
        }
    }

    private static void readKeys(DataInputStream in, DataOutputStream out) throws Exception {
        DataLakeFormat lake = lakeFormat(in.readUTF());
        short version = (short) in.readInt();
        boolean isDefaultBucketKey = in.readBoolean();
        RowType type = readRowType(in);
        List<String> keys = readTexts(in);
        var decoder =
                KeyDecoder.ofPrimaryKeyDecoder(type, keys, version, lake, isDefaultBucketKey);
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            writeRow(out, type.project(keys), decoder.decodeKey(readBytes(in)));
        }
    }

    private static void buckets(DataInputStream in, DataOutputStream out) throws IOException {
        var function = BucketingFunction.of(lakeFormat(in.readUTF()));
        int buckets = in.readInt();
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            out.writeInt(function.bucketing(readBytes(in), buckets));
        }
    }

    private static DataLakeFormat lakeFormat(String name) {
        return name.isEmpty() ? null : DataLakeFormat.valueOf(name.toUpperCase(Locale.ROOT));
    }

    private static void partitionTexts(DataInputStream in, DataOutputStream out)
            throws IOException {
        DataType type = readType(in);
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            Object value = readValue(in, type);
            writeText(out, PartitionUtils.convertValueOfType(value, type.getTypeRoot()));
        }
    }

    private static void partitionNames(DataInputStream in, DataOutputStream out)
            throws IOException {
        var spec = new ResolvedPartitionSpec(readTexts(in), readTexts(in));
        writeText(out, spec.getPartitionName());
        writeText(out, spec.getPartitionQualifiedName());
    }

    private static void autoPartitions(DataInputStream in, DataOutputStream out)
            throws IOException {
        var zone = ZoneId.of(in.readUTF());
        var unit = AutoPartitionTimeUnit.valueOf(in.readUTF());
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            var now = Instant.ofEpochMilli(in.readLong()).atZone(zone);
            writeText(out, PartitionUtils.generateAutoPartitionTime(now, in.readInt(), unit));
        }
    }

    // --- JSON -----------------------------------------------------------------------------------

    private static void writeTypeJson(DataInputStream in, DataOutputStream out)
            throws IOException {
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            var serde = DataTypeJsonSerde.INSTANCE;
            writeBytes(out, JsonSerdeUtils.writeValueAsBytes(readType(in), serde));
        }
    }

    private static void readTypeJson(DataInputStream in, DataOutputStream out) throws IOException {
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            writeType(out, JsonSerdeUtils.readValue(readBytes(in), DataTypeJsonSerde.INSTANCE));
        }
    }

    /** Reads documents of one kind and writes each again: what Fluss understood of it. */
    private static void json(DataInputStream in, DataOutputStream out) throws IOException {
        String kind = in.readUTF();
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            byte[] given = readBytes(in);
            writeBytes(
                    out,
                    switch (kind) {
                        case "schema" -> again(given, SchemaJsonSerde.INSTANCE);
                        case "table" -> again(given, TableDescriptorJsonSerde.INSTANCE);
                        case "database" -> again(given, DatabaseDescriptorJsonSerde.INSTANCE);
                        case "bucket_offsets" -> again(given, TableBucketOffsetsJsonSerde.INSTANCE);
                        case "manifest" -> again(given, RemoteLogManifestJsonSerde.INSTANCE);
                        case "snapshot" -> again(given, CompletedSnapshotJsonSerde.INSTANCE);
                        default -> throw new IllegalArgumentException("no such JSON: " + kind);
                    });
        }
    }

    private static <T, S extends JsonSerializer<T> & JsonDeserializer<T>> byte[] again(
            byte[] json, S serde) {
        return JsonSerdeUtils.writeValueAsBytes(JsonSerdeUtils.readValue(json, serde), serde);
    }

    // --- log record batches ---------------------------------------------------------------------

    /** What stands in a batch header besides lengths, counts and the checksum. */
    private record Header(
            byte magic,
            boolean appendOnly,
            int schemaId,
            long baseOffset,
            long timestamp,
            long writerId,
            int sequence) {
        static Header read(DataInputStream in) throws IOException {
            return new Header(
                    in.readByte(),
                    in.readBoolean(),
                    in.readInt(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readInt());
        }
    }

    private static void writeLog(DataInputStream in, DataOutputStream out) throws Exception {
        String format = in.readUTF();
        RowType type = readRowType(in);
        Header header = Header.read(in);
        ArrowCompressionInfo compression = readCompression(in);
        List<ChangeType> changes = new ArrayList<>();
        List<GenericRow> rows = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            changes.add(ChangeType.fromByteValue(in.readByte()));
            rows.add(readRow(in, type));
        }
        byte[] batch =
                switch (format) {
                    case "ARROW" -> arrowBatch(type, header, compression, changes, rows);
                    case "INDEXED" -> indexedBatch(type, header, changes, rows);
                    default -> compactedBatch(type, header, changes, rows);
                };
        // A leader fills these two in; they lie outside the checksum.
        var written = new DefaultLogRecordBatch();
        written.pointTo(MemorySegment.wrap(batch), 0);
        written.setBaseLogOffset(header.baseOffset);
        written.setCommitTimestamp(header.timestamp);
        written.ensureValid();
        writeBytes(out, batch);
    }

    private static byte[] arrowBatch(
            RowType type,
            Header header,
            ArrowCompressionInfo compression,
            List<ChangeType> changes,
            List<GenericRow> rows)
            throws Exception {
        var pages = new UnmanagedPagedOutputView(PAGE_BYTES);
        try (var allocator = new RootAllocator(Long.MAX_VALUE);
                var pool = new ArrowWriterPool(allocator)) {
            int id = header.schemaId;
            var writer =
                    pool.getOrCreateWriter(TABLE_ID, id, Integer.MAX_VALUE, type, compression);
            var builder =
                    header.magic == 0
                            ? MemoryLogRecordsArrowBuilder.builder(
                                    id, writer, pages, header.appendOnly)
                            : MemoryLogRecordsArrowBuilder.builder(
                                    0L, header.magic, id, writer, pages);
            for (int i = 0; i < rows.size(); i++) {
                builder.append(changes.get(i), rows.get(i));
            }
            builder.setWriterState(header.writerId, header.sequence);
            builder.close();
            return bytesOf(builder.build());
        }
    }

    private static byte[] indexedBatch(
            RowType type, Header header, List<ChangeType> changes, List<GenericRow> rows)
            throws Exception {
        var pages = new UnmanagedPagedOutputView(PAGE_BYTES);
        int limit = Integer.MAX_VALUE;
        var builder =
                header.magic == 0
                        ? MemoryLogRecordsIndexedBuilder.builder(
                                header.schemaId, limit, pages, header.appendOnly)
                        : MemoryLogRecordsIndexedBuilder.builder(
                                0L, header.schemaId, limit, header.magic, pages);
        var writer = new RowWriter(BinaryRowFormat.INDEXED, type);
        for (int i = 0; i < rows.size(); i++) {
            builder.append(changes.get(i), (IndexedRow) writer.write(rows.get(i)));
        }
        builder.setWriterState(header.writerId, header.sequence);
        builder.close();
        return bytesOf(builder.build());
    }

    private static byte[] compactedBatch(
            RowType type, Header header, List<ChangeType> changes, List<GenericRow> rows)
            throws Exception {
        var pages = new UnmanagedPagedOutputView(PAGE_BYTES);
        int limit = Integer.MAX_VALUE;
        var builder =
                header.magic == 0
                        ? MemoryLogRecordsCompactedBuilder.builder(
                                header.schemaId, limit, pages, header.appendOnly)
                        : MemoryLogRecordsCompactedBuilder.builder(
                                0L, header.schemaId, limit, header.magic, pages);
        var writer = new RowWriter(BinaryRowFormat.COMPACTED, type);
        for (int i = 0; i < rows.size(); i++) {
            builder.append(changes.get(i), (CompactedRow) writer.write(rows.get(i)));
        }
        builder.setWriterState(header.writerId, header.sequence);
        builder.close();
        return bytesOf(builder.build());
    }

    private static void readLog(DataInputStream in, DataOutputStream out) throws Exception {
        String format = in.readUTF();
        RowType type = readRowType(in);
        List<LogRecordBatch> batches = new ArrayList<>();
        MemoryLogRecords.pointToBytes(readBytes(in)).batches().forEach(batches::add);
        out.writeInt(batches.size());
        for (LogRecordBatch batch : batches) {
            out.writeByte(batch.magic());
            out.writeBoolean(batch.isValid());
            out.writeLong(batch.baseLogOffset());
            out.writeLong(batch.nextLogOffset());
            out.writeLong(batch.commitTimestamp());
            out.writeInt(batch.leaderEpoch());
            out.writeInt(batch.schemaId());
            out.writeLong(batch.writerId());
            out.writeInt(batch.batchSequence());
            out.writeInt(batch.sizeInBytes());
            out.writeInt(batch.getRecordCount());
            int id = batch.schemaId();
            try (var context = logContext(format, type, id);
                    var records = batch.records(context)) {
                while (records.hasNext()) {
                    LogRecord record = records.next();
                    out.writeLong(record.logOffset());
                    out.writeLong(record.timestamp());
                    out.writeByte(record.getChangeType().toByteValue());
                    writeRow(out, type, record.getRow());
                }
            }
        }
    }

    private static LogRecordReadContext logContext(String format, RowType type, int schemaId) {
        var schemas = new OneSchema(type);
        return switch (format) {
            case "ARROW" -> LogRecordReadContext.createArrowReadContext(type, schemaId, schemas);
            case "INDEXED" ->
                    LogRecordReadContext.createIndexedReadContext(type, schemaId, schemas);
            default -> LogRecordReadContext.createCompactedRowReadContext(type, schemaId);
        };
    }

    /** What a tablet server sends of stored ARROW batches when some columns are asked for. */
    private static void projectLog(DataInputStream in, DataOutputStream out) throws Exception {
        RowType type = readRowType(in);
        ArrowCompressionInfo compression = readCompression(in);
        int[] positions = new int[in.readInt()];
        for (int i = 0; i < positions.length; i++) {
            positions[i] = in.readInt();
        }
        byte[] bytes = readBytes(in);
        Path file = Files.createTempFile("oracle", ".log");
        try {
            Files.write(file, bytes);
            var projection = new FileLogProjection(new ProjectionPushdownCache());
            projection.setCurrentProjection(TABLE_ID, new OneSchema(type), compression, positions);
            try (var channel = FileChannel.open(file)) {
                var projected = projection.project(channel, 0, bytes.length, Integer.MAX_VALUE);
                writeBytes(out, bytesOf(projected.getBytesView()));
            }
        } finally {
            Files.delete(file);
        }
    }

    private static ArrowCompressionInfo readCompression(DataInputStream in) throws IOException {
        return new ArrowCompressionInfo(ArrowCompressionType.valueOf(in.readUTF()), in.readInt());
    }

    /** The schemas of a table that has only one. */
    private static final class OneSchema implements SchemaGetter {
        private final Schema schema;

        OneSchema(RowType type) {
            var builder = Schema.newBuilder();
            this.schema = builder.fromFields(type.getFieldNames(), type.getFieldTypes()).build();
        }

        @Override
        public Schema getSchema(int schemaId) {
            return schema;
        }

        @Override
        public CompletableFuture<SchemaInfo> getSchemaInfoAsync(int schemaId) {
            return CompletableFuture.completedFuture(new SchemaInfo(schema, schemaId));
        }

        @Override
        public SchemaInfo getLatestSchemaInfo() {
            return new SchemaInfo(schema, 1);
        }

        @Override
        public void release() {}
    }

    // --- key-value batches ----------------------------------------------------------------------

    private static void writeKv(DataInputStream in, DataOutputStream out) throws Exception {
        var format = KvFormat.valueOf(in.readUTF());
        RowType type = readRowType(in);
        var writer = new RowWriter(BinaryRowFormat.valueOf(format.name()), type);
        int id = in.readInt();
        long writerId = in.readLong();
        int sequence = in.readInt();
        var pages = new UnmanagedPagedOutputView(PAGE_BYTES);
        try (var builder = KvRecordBatchBuilder.builder(id, Integer.MAX_VALUE, pages, format)) {
            for (int left = in.readInt(); left > 0; left--) {
                byte[] key = readBytes(in);
                builder.append(key, in.readBoolean() ? writer.write(readRow(in, type)) : null);
            }
            builder.setWriterState(writerId, sequence);
            writeBytes(out, bytesOf(builder.build()));
        }
    }

    private static void readKv(DataInputStream in, DataOutputStream out) throws Exception {
        var format = KvFormat.valueOf(in.readUTF());
        RowType type = readRowType(in);
        var batch = DefaultKvRecordBatch.pointToBytes(readBytes(in));
        batch.ensureValid();
        out.writeByte(batch.magic());
        out.writeInt(batch.schemaId());
        out.writeLong(batch.writerId());
        out.writeInt(batch.batchSequence());
        out.writeInt(batch.sizeInBytes());
        out.writeInt(batch.getRecordCount());
        var context = KvRecordReadContext.createReadContext(format, new OneSchema(type));
        for (KvRecord record : batch.records(context)) {
            byte[] key = new byte[record.getKey().remaining()];
            record.getKey().get(key);
            writeBytes(out, key);
            out.writeBoolean(record.getRow() != null);
            if (record.getRow() != null) {
                writeRow(out, type, record.getRow());
            }
        }
    }

    /** The values of a lookup, one by one, and then the batch that a scan would send of them. */
    private static void writeValues(DataInputStream in, DataOutputStream out) throws Exception {
        var writer = new RowWriter(BinaryRowFormat.valueOf(in.readUTF()), readRowType(in));
        short schemaId = (short) in.readInt();
        var builder = DefaultValueRecordBatch.builder();
        int count = repeat(in, out);
        for (int i = 0; i < count; i++) {
            BinaryRow row = writer.write(readRow(in, writer.type));
            byte[] value = ValueEncoder.encodeValue(schemaId, row);
            writeBytes(out, value);
            builder.append(value);
        }
        var batch = builder.build();
        byte[] bytes = new byte[batch.sizeInBytes()];
        batch.getSegment().get(batch.getPosition(), bytes);
        writeBytes(out, bytes);
    }

    private static void readValues(DataInputStream in, DataOutputStream out) throws Exception {
        var format = KvFormat.valueOf(in.readUTF());
        RowType type = readRowType(in);
        var batch = DefaultValueRecordBatch.pointToBytes(readBytes(in));
        out.writeByte(batch.magic());
        out.writeInt(batch.sizeInBytes());
        out.writeInt(batch.getRecordCount());
        var context = ValueRecordReadContext.createReadContext(new OneSchema(type), format);
        for (ValueRecord record : batch.records(context)) {
            out.writeInt(record.schemaId());
            writeRow(out, type, record.getRow());
        }
    }

    // --- segment index files --------------------------------------------------------------------

    private static void writeIndex(DataInputStream in, DataOutputStream out) throws Exception {
        boolean ofOffsets = in.readBoolean();
        long baseOffset = in.readLong();
        int count = in.readInt();
        Path directory = Files.createTempDirectory("oracle");
        Path file = directory.resolve("index");
        try {
            // An index wants its file not to exist yet, and room for one entry more.
            try (AbstractIndex index =
                    ofOffsets
                            ? new OffsetIndex(file.toFile(), baseOffset, (count + 1) * 8)
                            : new TimeIndex(file.toFile(), baseOffset, (count + 1) * 12)) {
                for (int i = 0; i < count; i++) {
                    if (index instanceof OffsetIndex offsets) {
                        offsets.append(in.readLong(), in.readInt());
                    } else {
                        ((TimeIndex) index).maybeAppend(in.readLong(), in.readLong(), true);
                    }
                }
            }
            writeBytes(out, Files.readAllBytes(file));
        } finally {
            Files.deleteIfExists(file);
            Files.delete(directory);
        }
    }

    /** For each target what the index finds: (offset, position) or (timestamp, offset). */
    private static void lookUpIndex(DataInputStream in, DataOutputStream out) throws Exception {
        boolean ofOffsets = in.readBoolean();
        long baseOffset = in.readLong();
        byte[] bytes = readBytes(in);
        Path file = Files.createTempFile("oracle", ".index");
        try {
            Files.write(file, bytes);
            AbstractIndex index =
                    ofOffsets
                            ? new OffsetIndex(file.toFile(), baseOffset, -1, false)
                            : new TimeIndex(file.toFile(), baseOffset, -1, false);
            index.sanityCheck();
            int count = repeat(in, out);
            for (int i = 0; i < count; i++) {
                long target = in.readLong();
                IndexEntry found =
                        index instanceof OffsetIndex offsets
                                ? offsets.lookup(target)
                                : ((TimeIndex) index).lookup(target);
                out.writeLong(found.indexKey());
                out.writeLong(found.indexValue());
            }
            index.closeHandler();
        } finally {
            Files.delete(file);
        }
    }

    // --- enumerations ---------------------------------------------------------------------------

    private static void enumerations(DataOutputStream out) throws IOException {
        out.writeInt(Errors.values().length);
        for (Errors error : Errors.values()) {
            out.writeInt(error.code());
            out.writeUTF(error.name());
            out.writeBoolean(error.exception() instanceof RetriableException);
            out.writeBoolean(error.exception() instanceof InvalidMetadataException);
        }
        out.writeInt(ApiKeys.values().length);
        for (ApiKeys key : ApiKeys.values()) {
            out.writeInt(key.id);
            out.writeUTF(key.name());
            out.writeInt(key.lowestSupportedVersion);
            out.writeInt(key.highestSupportedVersion);
            out.writeBoolean(key.visibility == ApiKeys.ApiVisibility.PUBLIC);
        }
        out.writeInt(ChangeType.values().length);
        for (ChangeType type : ChangeType.values()) {
            out.writeInt(type.toByteValue());
            out.writeUTF(type.name());
            out.writeUTF(type.shortString());
        }
    }

    // --- types across the pipe ------------------------------------------------------------------

    private static RowType readRowType(DataInputStream in) throws IOException {
        return (RowType) readType(in);
    }

    private static DataType readType(DataInputStream in) throws IOException {
        var root = DataTypeRoot.valueOf(in.readUTF());
        boolean nullable = in.readBoolean();
        DataType type =
                switch (root) {
                    case BOOLEAN -> DataTypes.BOOLEAN();
                    case TINYINT -> DataTypes.TINYINT();
                    case SMALLINT -> DataTypes.SMALLINT();
                    case INTEGER -> DataTypes.INT();
                    case BIGINT -> DataTypes.BIGINT();
                    case FLOAT -> DataTypes.FLOAT();
                    case DOUBLE -> DataTypes.DOUBLE();
                    case STRING -> DataTypes.STRING();
                    case BYTES -> DataTypes.BYTES();
                    case DATE -> DataTypes.DATE();
                    case CHAR -> DataTypes.CHAR(in.readInt());
                    case BINARY -> DataTypes.BINARY(in.readInt());
                    case DECIMAL -> DataTypes.DECIMAL(in.readInt(), in.readInt());
                    case TIME_WITHOUT_TIME_ZONE -> DataTypes.TIME(in.readInt());
                    case TIMESTAMP_WITHOUT_TIME_ZONE -> DataTypes.TIMESTAMP(in.readInt());
                    case TIMESTAMP_WITH_LOCAL_TIME_ZONE -> DataTypes.TIMESTAMP_LTZ(in.readInt());
                    case ARRAY -> DataTypes.ARRAY(readType(in));
                    case MAP -> DataTypes.MAP(readType(in), readType(in));
                    case ROW -> {
                        var fields = new DataField[in.readInt()];
                        for (int i = 0; i < fields.length; i++) {
                            String name = readText(in);
                            String description = in.readBoolean() ? readText(in) : null;
                            int id = in.readInt();
                            fields[i] = new DataField(name, readType(in), description, id);
                        }
                        yield new RowType(Arrays.asList(fields));
                    }
                };
        return type.copy(nullable);
    }

    private static void writeType(DataOutputStream out, DataType type) throws IOException {
        out.writeUTF(type.getTypeRoot().name());
        out.writeBoolean(type.isNullable());
        switch (type.getTypeRoot()) {
            case CHAR, BINARY -> out.writeInt(DataTypeChecks.getLength(type));
            case DECIMAL -> {
                out.writeInt(DataTypeChecks.getPrecision(type));
                out.writeInt(DataTypeChecks.getScale(type));
            }
            case TIME_WITHOUT_TIME_ZONE,
                    TIMESTAMP_WITHOUT_TIME_ZONE,
                    TIMESTAMP_WITH_LOCAL_TIME_ZONE ->
                    out.writeInt(DataTypeChecks.getPrecision(type));
            case ROW -> {
                List<DataField> fields = ((RowType) type).getFields();
                out.writeInt(fields.size());
                for (DataField field : fields) {
                    writeText(out, field.getName());
                    out.writeBoolean(field.getDescription().isPresent());
                    if (field.getDescription().isPresent()) {
                        writeText(out, field.getDescription().get());
                    }
                    out.writeInt(field.getFieldId());
                    writeType(out, field.getType());
                }
            }
            default -> {
                for (DataType child : type.getChildren()) {
                    writeType(out, child);
                }
            }
        }
    }

    private static DataType[] typesOf(RowType type) {
        return type.getChildren().toArray(new DataType[0]);
    }

    // --- values across the pipe -----------------------------------------------------------------

    private static GenericRow readRow(DataInputStream in, RowType type) throws IOException {
        var row = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            row.setField(i, readValue(in, type.getTypeAt(i)));
        }
        return row;
    }

    private static Object readValue(DataInputStream in, DataType type) throws IOException {
        if (!in.readBoolean()) {
            return null;
        }
        return switch (type.getTypeRoot()) {
            case BOOLEAN -> in.readBoolean();
            case TINYINT -> in.readByte();
            case SMALLINT -> in.readShort();
            case INTEGER, DATE -> in.readInt();
            case BIGINT -> in.readLong();
            case FLOAT -> in.readFloat();
            case DOUBLE -> in.readDouble();
            case CHAR, STRING -> BinaryString.fromString(readText(in));
            case BINARY, BYTES -> readBytes(in);
            case DECIMAL -> {
                int precision = DataTypeChecks.getPrecision(type);
                int scale = DataTypeChecks.getScale(type);
                var number = new BigDecimal(new BigInteger(readBytes(in)), scale);
                yield Decimal.fromBigDecimal(number, precision, scale);
            }
            case TIME_WITHOUT_TIME_ZONE -> (int) readTicks(in, type).millis;
            case TIMESTAMP_WITHOUT_TIME_ZONE -> {
                Ticks ticks = readTicks(in, type);
                yield TimestampNtz.fromMillis(ticks.millis, ticks.nanos);
            }
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE -> {
                Ticks ticks = readTicks(in, type);
                yield TimestampLtz.fromEpochMillis(ticks.millis, ticks.nanos);
            }
            case ARRAY -> {
                Object[] elements = new Object[in.readInt()];
                for (int i = 0; i < elements.length; i++) {
                    elements[i] = readValue(in, ((ArrayType) type).getElementType());
                }
                yield new GenericArray(elements);
            }
            case MAP -> {
                var pairs = new LinkedHashMap<Object, Object>();
                for (int left = in.readInt(); left > 0; left--) {
                    Object key = readValue(in, ((MapType) type).getKeyType());
                    pairs.put(key, readValue(in, ((MapType) type).getValueType()));
                }
                yield new GenericMap(pairs);
            }
            case ROW -> readRow(in, (RowType) type);
        };
    }

    private static void writeRow(DataOutputStream out, RowType type, InternalRow row)
            throws IOException {
        for (int i = 0; i < type.getFieldCount(); i++) {
            // Nullable, whatever the type says: a wrong null should be seen, not read as a value.
            DataType field = type.getTypeAt(i).copy(true);
            writeValue(out, field, InternalRow.createFieldGetter(field, i).getFieldOrNull(row));
        }
    }

    private static void writeValue(DataOutputStream out, DataType type, Object value)
            throws IOException {
        out.writeBoolean(value != null);
        if (value == null) {
            return;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN -> out.writeBoolean((boolean) value);
            case TINYINT -> out.writeByte((byte) value);
            case SMALLINT -> out.writeShort((short) value);
            case INTEGER, DATE -> out.writeInt((int) value);
            case BIGINT -> out.writeLong((long) value);
            case FLOAT -> out.writeInt(Float.floatToRawIntBits((float) value));
            case DOUBLE -> out.writeLong(Double.doubleToRawLongBits((double) value));
            case CHAR, STRING -> writeText(out, value.toString());
            case BINARY, BYTES -> writeBytes(out, (byte[]) value);
            case DECIMAL -> {
                BigInteger unscaled = ((Decimal) value).toBigDecimal().unscaledValue();
                writeBytes(out, unscaled.toByteArray());
            }
            case TIME_WITHOUT_TIME_ZONE -> writeTicks(out, type, (int) value, 0);
            case TIMESTAMP_WITHOUT_TIME_ZONE -> {
                var local = (TimestampNtz) value;
                writeTicks(out, type, local.getMillisecond(), local.getNanoOfMillisecond());
            }
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE -> {
                var instant = (TimestampLtz) value;
                long millis = instant.getEpochMillisecond();
                writeTicks(out, type, millis, instant.getNanoOfMillisecond());
            }
            case ARRAY -> writeArray(out, ((ArrayType) type).getElementType(), value);
            case MAP -> {
                writeArray(out, ((MapType) type).getKeyType(), ((InternalMap) value).keyArray());
                writeArray(
                        out, ((MapType) type).getValueType(), ((InternalMap) value).valueArray());
            }
            case ROW -> writeRow(out, (RowType) type, (InternalRow) value);
        }
    }

    private static void writeArray(DataOutputStream out, DataType element, Object value)
            throws IOException {
        var array = (InternalArray) value;
        DataType nullable = element.copy(true);
        var getter = InternalArray.createElementGetter(nullable);
        out.writeInt(array.size());
        for (int i = 0; i < array.size(); i++) {
            writeValue(out, nullable, getter.getElementOrNull(array, i));
        }
    }

    /** A point in time as Fluss keeps it: milliseconds, and the nanoseconds within. */
    private record Ticks(long millis, int nanos) {}

    // A physical value counts in seconds (precision 0), milliseconds (1 to 3), microseconds (4 to 6)
    // or nanoseconds (7 to 9).

    private static Ticks readTicks(DataInputStream in, DataType type) throws IOException {
        int precision = DataTypeChecks.getPrecision(type);
        long count = in.readLong();
        if (precision == 0) {
            return new Ticks(Math.multiplyExact(count, 1_000L), 0);
        }
        if (precision <= 3) {
            return new Ticks(count, 0);
        }
        long perMilli = precision <= 6 ? 1_000L : 1_000_000L;
        int nanos = (int) (Math.floorMod(count, perMilli) * (1_000_000L / perMilli));
        return new Ticks(Math.floorDiv(count, perMilli), nanos);
    }

    private static void writeTicks(DataOutputStream out, DataType type, long millis, int nanos)
            throws IOException {
        int precision = DataTypeChecks.getPrecision(type);
        if (precision == 0) {
            out.writeLong(Math.floorDiv(millis, 1_000L));
        } else if (precision <= 3) {
            out.writeLong(millis);
        } else {
            // The product may leave the range of a long where the sum comes back into it.
            long perMilli = precision <= 6 ? 1_000L : 1_000_000L;
            out.writeLong(millis * perMilli + nanos / (1_000_000L / perMilli));
        }
    }

    // --- bytes and texts across the pipe --------------------------------------------------------

    /** Takes the length of a list and promises an answer of the same length. */
    private static int repeat(DataInputStream in, DataOutputStream out) throws IOException {
        int count = in.readInt();
        out.writeInt(count);
        return count;
    }

    private static byte[] readBytes(DataInputStream in) throws IOException {
        int length = in.readInt();
        byte[] bytes = in.readNBytes(length);
        require(bytes.length == length, "a byte string of " + length + " bytes is cut off");
        return bytes;
    }

    private static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    private static String readText(DataInputStream in) throws IOException {
        return new String(readBytes(in), StandardCharsets.UTF_8);
    }

    private static void writeText(DataOutputStream out, String text) throws IOException {
        writeBytes(out, text.getBytes(StandardCharsets.UTF_8));
    }

    private static List<String> readTexts(DataInputStream in) throws IOException {
        List<String> texts = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            texts.add(readText(in));
        }
        return texts;
    }

    private static byte[] bytesOf(BinaryRow row) {
        byte[] bytes = new byte[row.getSizeInBytes()];
        row.copyTo(bytes, 0);
        return bytes;
    }

    private static byte[] bytesOf(BytesView view) {
        byte[] bytes = new byte[view.getBytesLength()];
        view.getByteBuf().getBytes(0, bytes);
        return bytes;
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalArgumentException(otherwise);
        }
    }
}
