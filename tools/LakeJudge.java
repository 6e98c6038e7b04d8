// Reads tables of a lake with Java: by the generic reader of Apache Iceberg, and by the lake source of
// Apache Fluss 0.9.1 (its planner and its record reader). tests/support/lake/java_judge.py runs it.
//
//   java -cp fluss-client.jar:fluss-lake-iceberg.jar:hadoop-apache.jar:sqlite-jdbc.jar:slf4j-jdk14.jar \
//       tools/LakeJudge.java BOOTSTRAP KEY=VALUE...
//
// (Java 17 or newer.) The pairs are the settings of the catalog. It answers each line `DATABASE TABLE
// SNAPSHOT` of its input with a line for each row and reader, and a line `end`, or a line `error`. A line
// has tabs between reader, bucket, offset, time in milliseconds, and the values in parentheses: numbers
// as they are, floating-point numbers as bits, texts and bytes as hexadecimal digits, times as
// microseconds, nothing as `~`.

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntFunction;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.client.admin.Admin;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.lake.iceberg.IcebergLakeStorage;
import org.apache.fluss.lake.iceberg.source.IcebergSplit;
import org.apache.fluss.lake.source.LakeSource;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.Decimal;
import org.apache.fluss.row.InternalArray;
import org.apache.fluss.row.InternalMap;
import org.apache.fluss.row.InternalRow;
import org.apache.fluss.row.TimestampLtz;
import org.apache.fluss.row.TimestampNtz;
import org.apache.fluss.types.ArrayType;
import org.apache.fluss.types.DataType;
import org.apache.fluss.types.DataTypeRoot;
import org.apache.fluss.types.MapType;
import org.apache.fluss.types.RowType;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;

public final class LakeJudge {
    private static final int SYSTEM_COLUMNS = 3;
    private static final HexFormat HEX = HexFormat.of();

    private final Admin admin;
    private final Map<String, String> lake;
    private final PrintWriter out =
            new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));

    private LakeJudge(Admin admin, Map<String, String> lake) {
        this.admin = admin;
        this.lake = lake;
    }

    /** A new catalog for each question: its connection to SQLite keeps the state of its first read. */
    private Catalog newCatalog() {
        return CatalogUtil.buildIcebergCatalog(
                "fluss-iceberg-catalog", lake, new org.apache.hadoop.conf.Configuration());
    }

    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(arguments[0].split(",")));
        var lake = new HashMap<String, String>();
        for (int place = 1; place < arguments.length; place++) {
            var pair = arguments[place].split("=", 2);
            lake.put(pair[0], pair[1]);
        }
        try (var connection = ConnectionFactory.createConnection(settings)) {
            new LakeJudge(connection.getAdmin(), lake).answerAll();
        }
        System.exit(0); // threads of the client may remain
    }

    private void answerAll() throws Exception {
        var questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (var line = questions.readLine(); line != null; line = questions.readLine()) {
            var words = line.split(" ");
            try {
                readWithIceberg(TableIdentifier.of(words[0], words[1]), Long.parseLong(words[2]));
                readWithFluss(TablePath.of(words[0], words[1]), Long.parseLong(words[2]));
                out.println("end");
            } catch (Exception error) {
                error.printStackTrace();
                out.println("error\t" + error.toString().replace('\n', ' '));
            }
            out.flush();
        }
    }

    // --- Iceberg's generic reader ---------------------------------------------------------------

    private void readWithIceberg(TableIdentifier name, long snapshot) throws Exception {
        var catalog = newCatalog();
        var table = catalog.loadTable(name);
        try (var rows = IcebergGenerics.read(table).useSnapshot(snapshot).build()) {
            for (Record row : rows) {
                int columns = row.size() - SYSTEM_COLUMNS;
                var at = (OffsetDateTime) row.get(columns + 2);
                print("iceberg", (int) row.get(columns), (long) row.get(columns + 1),
                        at.toInstant().toEpochMilli(), joined(columns, place -> ofIceberg(row.get(place))));
            }
        }
        ((AutoCloseable) catalog).close();
    }

    private static String ofIceberg(Object value) {
        if (value instanceof List<?> list) {
            return joined(list.size(), place -> ofIceberg(list.get(place)));
        }
        if (value instanceof Map<?, ?> map) {
            var pairs = new TreeMap<String, String>();
            map.forEach((key, one) -> pairs.put(ofIceberg(key), ofIceberg(one)));
            return pairs.toString();
        }
        if (value instanceof Record row) {
            return joined(row.size(), place -> ofIceberg(row.get(place)));
        }
        if (value instanceof LocalDate date) {
            return String.valueOf(date.toEpochDay());
        }
        if (value instanceof LocalTime time) {
            return String.valueOf(time.toNanoOfDay() / 1_000);
        }
        if (value instanceof LocalDateTime time) {
            return String.valueOf(micros(time.toInstant(ZoneOffset.UTC)));
        }
        if (value instanceof OffsetDateTime time) {
            return String.valueOf(micros(time.toInstant()));
        }
        if (value instanceof ByteBuffer bytes) {
            var copy = new byte[bytes.remaining()];
            bytes.duplicate().get(copy);
            return plain(copy);
        }
        return plain(value);
    }

    // --- Fluss's lake source --------------------------------------------------------------------

    private void readWithFluss(TablePath path, long snapshot) throws Exception {
        RowType type = admin.getTableInfo(path).get().getRowType();
        LakeSource<IcebergSplit> source =
                new IcebergLakeStorage(Configuration.fromMap(lake)).createLakeSource(path);
        for (IcebergSplit split : source.createPlanner(() -> snapshot).plan()) {
            try (var rows = source.createRecordReader(() -> split).read()) {
                while (rows.hasNext()) {
                    var row = rows.next();
                    print("fluss", split.bucket(), row.logOffset(), row.timestamp(),
                            ofFluss(row.getRow(), type));
                }
            }
        }
    }

    private static String ofFluss(Object value, DataType type) {
        if (value == null) {
            return "~";
        }
        if (value instanceof InternalRow row) {
            var types = ((RowType) type).getChildren();
            return joined(types.size(), place -> ofFluss(
                    InternalRow.createFieldGetter(types.get(place), place).getFieldOrNull(row),
                    types.get(place)));
        }
        if (value instanceof InternalArray array) {
            return joined(array.size(), place -> element(array, place, ((ArrayType) type).getElementType()));
        }
        if (value instanceof InternalMap map) {
            var pairs = new TreeMap<String, String>();
            for (int place = 0; place < map.size(); place++) {
                pairs.put(element(map.keyArray(), place, ((MapType) type).getKeyType()),
                        element(map.valueArray(), place, ((MapType) type).getValueType()));
            }
            return pairs.toString();
        }
        if (value instanceof BinaryString text) {
            return plain(text.toString());
        }
        if (value instanceof Decimal number) {
            return plain(number.toBigDecimal());
        }
        if (value instanceof TimestampNtz time) {
            return String.valueOf(time.getMillisecond() * 1_000 + time.getNanoOfMillisecond() / 1_000);
        }
        if (value instanceof TimestampLtz time) {
            return String.valueOf(time.getEpochMillisecond() * 1_000 + time.getNanoOfMillisecond() / 1_000);
        }
        if (type.getTypeRoot() == DataTypeRoot.TIME_WITHOUT_TIME_ZONE) {
            return String.valueOf((int) value * 1_000L);
        }
        return plain(value);
    }

    private static String element(InternalArray array, int place, DataType type) {
        return ofFluss(InternalArray.createElementGetter(type).getElementOrNull(array, place), type);
    }

    // --- texts ----------------------------------------------------------------------------------

    private static String plain(Object value) {
        if (value == null) {
            return "~";
        }
        if (value instanceof Float number) {
            return Integer.toHexString(Float.floatToIntBits(number));
        }
        if (value instanceof Double number) {
            return Long.toHexString(Double.doubleToLongBits(number));
        }
        if (value instanceof BigDecimal number) {
            return number.toPlainString();
        }
        if (value instanceof CharSequence text) {
            return HEX.formatHex(text.toString().getBytes(StandardCharsets.UTF_8));
        }
        if (value instanceof byte[] bytes) {
            return HEX.formatHex(bytes);
        }
        return value.toString();
    }

    private static long micros(Instant time) {
        return ChronoUnit.MICROS.between(Instant.EPOCH, time);
    }

    private static String joined(int count, IntFunction<String> each) {
        var texts = new ArrayList<String>();
        for (int place = 0; place < count; place++) {
            texts.add(each.apply(place));
        }
        return "(" + String.join(",", texts) + ")";
    }

    private void print(String reader, int bucket, long offset, long timeMs, String values) {
        out.println(reader + "\t" + bucket + "\t" + offset + "\t" + timeMs + "\t" + values);
    }
}
