package io.ratelimit.demand;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.ChildProcess;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The memory of meters through which a flood of keys went, in a separate process. */
@Tag("slow")
class DemandBoundTests {

    private static final int METERS = 20;
    private static final int KEYS = 200_000;
    private static final int HOURS = 2 * 168 - 1;

    @Test
    void aMeterTakesAtMost200KilobytesWhateverTheNumberOfKeys() throws IOException, InterruptedException {
        String output = ChildProcess.output("-XX:+UseSerialGC", Flood.class);

        assertThat(Long.parseLong(output.strip())).isBetween(100_000L, 200_000L);
    }

    /** Prints the bytes of a meter with a full sample, a week of hours and heaviest keys with long names. */
    static final class Flood {

        private Flood() {}

        public static void main(String[] args) {
            flood(new DemandMeter(BucketSpec.of("600/1m")));
            long before = used();
            List<DemandMeter> meters = new ArrayList<>();
            for (int i = 0; i < METERS; i++) {
                meters.add(flood(new DemandMeter(BucketSpec.of("600/1m"))));
            }
            System.out.println((used() - before) / meters.size());
        }

        private static DemandMeter flood(DemandMeter meter) {
            long hour = Duration.ofHours(1).toNanos();
            for (int i = 0; i < HOURS; i++) {
                for (int key = 0; key < KEYS / HOURS; key++) {
                    meter.feed("–".repeat(70) + (key % 3 == 0 ? key % 20 : i * KEYS + key), 1, i * hour);
                }
                meter.endHour(i * hour);
            }
            meter.demand();
            return meter;
        }

        /** Returns the bytes in use once a collection frees nothing more. */
        private static long used() {
            long used = Long.MAX_VALUE;
            for (long previous = 0; used != previous; ) {
                previous = used;
                System.gc();
                used = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
            }
            return used;
        }
    }
}
