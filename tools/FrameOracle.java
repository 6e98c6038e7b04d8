// Puts protobuf messages into frames, and reads and writes them again, with Apache Fluss's own
// classes; tests/unit/wire compares our bytes with its answers.
//
//   java -cp fluss-server-0.9.1-incubating.jar tools/FrameOracle.java < questions     (Java 17 or newer)
//
// A question is a line of words, an answer is a line of hex. Bytes in a question are hex too, with
// "-" for none:
//
//   request KEY VERSION ID MESSAGE BYTES    the frame of a request
//   error ID CODE TEXT                      the frame of an error response (TEXT: hex of UTF-8)
//   failure CODE TEXT                       the frame of a server failure
//   again MESSAGE BYTES                     the message, after Java has read it; "absent" where this
//                                           release has no such message

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.fluss.rpc.messages.ApiMessage;
import org.apache.fluss.rpc.protocol.ApiError;
import org.apache.fluss.rpc.protocol.Errors;
import org.apache.fluss.rpc.protocol.MessageCodec;
import org.apache.fluss.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.fluss.shaded.netty4.io.netty.buffer.ByteBufAllocator;
import org.apache.fluss.shaded.netty4.io.netty.buffer.Unpooled;
import org.apache.fluss.shaded.netty4.io.netty.buffer.UnpooledByteBufAllocator;

public final class FrameOracle {
    private static final ByteBufAllocator MEMORY = UnpooledByteBufAllocator.DEFAULT;

    public static void main(String[] arguments) throws Exception {
        var questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "request" -> hex(
                    MessageCodec.encodeRequest(
                            MEMORY,
                            Short.parseShort(words[1]),
                            Short.parseShort(words[2]),
                            Integer.parseInt(words[3]),
                            read(words[4], words[5])));
            case "error" -> hex(
                    MessageCodec.encodeErrorResponse(
                            MEMORY, Integer.parseInt(words[1]), error(words[2], words[3])));
            case "failure" -> hex(
                    MessageCodec.encodeServerFailure(MEMORY, error(words[1], words[2])));
            case "again" -> again(words[1], words[2]);
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static String again(String name, String bytes) throws Exception {
        try {
            return HexFormat.of().formatHex(read(name, bytes).toByteArray());
        } catch (ClassNotFoundException absent) {
            return "absent";
        }
    }

    private static ApiMessage read(String name, String bytes) throws Exception {
        var type = Class.forName("org.apache.fluss.rpc.messages." + name);
        var message = (ApiMessage) type.getConstructor().newInstance();
        byte[] data = bytes(bytes);
        message.parseFrom(Unpooled.wrappedBuffer(data), data.length);
        return message;
    }

    private static ApiError error(String code, String text) {
        var message = new String(bytes(text), StandardCharsets.UTF_8);
        return new ApiError(Errors.forCode(Integer.parseInt(code)), message);
    }

    private static byte[] bytes(String hex) {
        return hex.equals("-") ? new byte[0] : HexFormat.of().parseHex(hex);
    }

    private static String hex(ByteBuf frame) {
        byte[] data = new byte[frame.readableBytes()];
        frame.readBytes(data);
        return HexFormat.of().formatHex(data);
    }
}
