// Runs cases, prints their lines, and knows which methods of the client they have called.

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.admin.Admin;
import org.apache.fluss.client.admin.KvSnapshotLease;
import org.apache.fluss.client.lookup.Lookup;
import org.apache.fluss.client.lookup.Lookuper;
import org.apache.fluss.client.lookup.TypedLookuper;
import org.apache.fluss.client.table.MultiTable;
import org.apache.fluss.client.table.Table;
import org.apache.fluss.client.table.scanner.MultiTableScan;
import org.apache.fluss.client.table.scanner.Scan;
import org.apache.fluss.client.table.scanner.batch.BatchScanner;
import org.apache.fluss.client.table.scanner.log.LogScanner;
import org.apache.fluss.client.table.scanner.log.MultiTableLogScanner;
import org.apache.fluss.client.table.scanner.log.TypedLogScanner;
import org.apache.fluss.client.table.writer.Append;
import org.apache.fluss.client.table.writer.AppendWriter;
import org.apache.fluss.client.table.writer.MultiTableWrite;
import org.apache.fluss.client.table.writer.MultiTableWriter;
import org.apache.fluss.client.table.writer.TypedAppendWriter;
import org.apache.fluss.client.table.writer.TypedUpsertWriter;
import org.apache.fluss.client.table.writer.Upsert;
import org.apache.fluss.client.table.writer.UpsertWriter;
import org.apache.fluss.rpc.protocol.Errors;

final class Recorder {
    private static final List<Class<?>> INTERFACES = List.of(
            Connection.class, Admin.class, KvSnapshotLease.class, Table.class, Append.class,
            AppendWriter.class, TypedAppendWriter.class, Upsert.class, UpsertWriter.class,
            TypedUpsertWriter.class, Lookup.class, Lookuper.class, TypedLookuper.class, Scan.class,
            LogScanner.class, TypedLogScanner.class, BatchScanner.class, MultiTable.class,
            MultiTableScan.class, MultiTableLogScanner.class, MultiTableWrite.class,
            MultiTableWriter.class);
    private static final int WAIT_S = 30;

    private final Set<String> called = new TreeSet<>();
    private final Set<String> calledNow = new LinkedHashSet<>();

    /** Run a case and print its line; a future is awaited. */
    void step(String name, Callable<?> work) {
        calledNow.clear();
        var line = "";
        try {
            var found = work.call();
            line = "ok\t" + told(found instanceof CompletableFuture<?> future ? got(future, each -> each) : found);
        } catch (Throwable error) {
            line = refusal(error);
        }
        System.out.println(name + "\t" + String.join(" ", calledNow) + "\t" + line);
    }

    private static String told(Object found) {
        return found == null ? "" : String.valueOf(found).replaceAll("\\s+", " ");
    }

    private static String refusal(Throwable error) {
        var cause = error;
        while (cause instanceof ExecutionException || cause instanceof CompletionException
                || cause instanceof InvocationTargetException) {
            cause = cause.getCause();
        }
        System.err.println(cause);
        for (var each = cause; each != null; each = each.getCause()) {
            var code = Errors.forException(each).code();
            if (code != Errors.UNKNOWN_SERVER_ERROR.code() || each.getClass().getSimpleName().startsWith("UnknownServer")) {
                return code + "\t" + each.getClass().getSimpleName();
            }
        }
        return "local\t" + cause.getClass().getSimpleName();
    }

    static <T, R> R got(CompletableFuture<T> future, Function<T, R> essence) throws Exception {
        return essence.apply(future.get(WAIT_S, TimeUnit.SECONDS));
    }

    private static String signature(Class<?> type, Method method) {
        return type.getSimpleName() + "." + method.getName() + Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName).collect(Collectors.joining(",", "(", ")"));
    }

    <T> T recorded(Class<T> type, Object real) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) -> {
            if (method.getDeclaringClass() != Object.class) {
                called.add(signature(type, method));
                calledNow.add(signature(type, method));
            }
            try {
                var found = method.invoke(real, given);
                return INTERFACES.contains(method.getReturnType()) ? recorded(method.getReturnType(), found) : found;
            } catch (InvocationTargetException error) {
                throw error.getCause();
            }
        }));
    }

    /** Print the methods that no case has called. */
    void printMissing() {
        for (var type : INTERFACES) {
            for (var method : type.getMethods()) {
                if (!called.contains(signature(type, method))) {
                    System.out.println("never\t" + signature(type, method) + "\t\t");
                }
            }
        }
    }
}
