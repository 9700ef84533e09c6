package io.ratelimit.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ChildProcess;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Enumeration;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The memory of a replay, in a separate process with a small heap. */
@Tag("slow")
class ReplayMemoryTests {

    private static final int LINES = 20_000;
    private static final int LENGTH = 60_000;

    @Test
    void longLinesAreReplayedInASmallHeap() throws IOException, InterruptedException {
        assertThat(ChildProcess.output("-Xmx256m", LongLines.class))
                .contains("20,000 lines, 20,000 requests")
                .contains("asked by 20,000 requests of 1 key; denies 19,996 requests");
    }

    /** Replays four seconds of 300 MB each. The limit allows one request of each second. */
    static final class LongLines {

        private LongLines() {}

        public static void main(String[] arguments) {
            String path = "/" + "x".repeat(LENGTH);
            Iterator<InputStream> lines = IntStream.range(0, LINES)
                    .<InputStream>mapToObj(i -> new ByteArrayInputStream(String.format(
                                    "10.0.0.1 - - [%d] \"GET %s HTTP/1.1\" 200 1%n", 1_764_000_000 + i / 5_000, path)
                            .getBytes(StandardCharsets.ISO_8859_1)))
                    .iterator();
            List<String> options = List.of(
                    "-",
                    "--format",
                    "$remote_addr - $remote_user [$msec] \"$request\" $status $body_bytes_sent",
                    "--ratelimit.policies.candidate.key=ip",
                    "--ratelimit.policies.candidate.rate=1/1s",
                    "--quiet");
            InputStream log = new SequenceInputStream(new Enumeration<>() {
                @Override
                public boolean hasMoreElements() {
                    return lines.hasNext();
                }

                @Override
                public InputStream nextElement() {
                    return lines.next();
                }
            });
            System.exit(new ReplayCommand(log, System.out, System.err).run(options));
        }
    }
}
