// Looks rows up with Apache Fluss's own Java client; tests/conformance compares what it finds with
// what our client has written.
//
//   java -cp fluss-client-0.9.1-incubating.jar tools/Lookups.java BOOTSTRAP DATABASE TABLE < keys
//
// (Java 17 or newer.) A line of keys is one primary key, a line of answers is the row under it, or
// "absent". Values stand between spaces, in the table's order; each is the hex of its text in UTF-8,
// "-" for NULL and "." for a text of nothing. The text of a DATE is its number of days since 1970,
// that of a BOOLEAN true or false, all others are as Java prints them.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.client.lookup.LookupResult;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.Decimal;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.row.InternalRow;
import org.apache.fluss.types.DataType;
import org.apache.fluss.types.DecimalType;
import org.apache.fluss.types.RowType;

public final class Lookups {
    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(arguments[0].split(",")));
        var questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        try (var connection = ConnectionFactory.createConnection(settings);
                var table = connection.getTable(TablePath.of(arguments[1], arguments[2]))) {
            var info = table.getTableInfo();
            var keys = info.getRowType().project(info.getPrimaryKeys());
            var lookuper = table.newLookup().createLookuper();
            var answers = new ArrayList<CompletableFuture<LookupResult>>();
            for (String line = questions.readLine(); line != null; line = questions.readLine()) {
                answers.add(lookuper.lookup(row(line.split(" "), keys)));
            }
            for (var answer : answers) {
                System.out.println(line(answer.get().getSingletonRow(), info.getRowType()));
            }
        }
    }

    private static GenericRow row(String[] words, RowType type) {
        var row = new GenericRow(words.length);
        for (int place = 0; place < words.length; place++) {
            row.setField(place, value(text(words[place]), type.getTypeAt(place)));
        }
        return row;
    }

    private static Object value(String text, DataType type) {
        return switch (type.getTypeRoot()) {
            case BOOLEAN -> Boolean.valueOf(text);
            case INTEGER, DATE -> Integer.valueOf(text);
            case BIGINT -> Long.valueOf(text);
            case STRING -> BinaryString.fromString(text);
            case DECIMAL -> {
                var decimal = (DecimalType) type;
                yield Decimal.fromBigDecimal(
                        new BigDecimal(text), decimal.getPrecision(), decimal.getScale());
            }
            default -> throw new IllegalArgumentException(type.toString());
        };
    }

    private static String line(InternalRow row, RowType type) {
        if (row == null) {
            return "absent";
        }
        var words = new ArrayList<String>();
        for (int place = 0; place < type.getFieldCount(); place++) {
            var getter = InternalRow.createFieldGetter(type.getTypeAt(place), place);
            words.add(word(getter.getFieldOrNull(row)));
        }
        return String.join(" ", words);
    }

    private static String word(Object value) {
        if (value == null) {
            return "-";
        }
        var text = value.toString();
        return text.isEmpty() ? "." : HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(String word) {
        byte[] data = word.equals(".") ? new byte[0] : HexFormat.of().parseHex(word);
        return new String(data, StandardCharsets.UTF_8);
    }
}
