package io.ratelimit.benchmarks.bounds;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A wall clock that differs from the machine's, for a process of its own: libfaketime, which Debian has. The monotonic clock
 * stays, as on a machine whose time is set.
 */
final class OffClock {

    private static final String DEBIAN = "/usr/lib/%s-linux-gnu/faketime/libfaketimeMT.so.1";

    private OffClock() {}

    /** Returns the library that {@code RATELIMIT_TEST_FAKETIME} names, or the one that is installed. */
    static Optional<Path> library() {
        return Stream.of(
                        System.getenv().getOrDefault("RATELIMIT_TEST_FAKETIME", DEBIAN.formatted("x86_64")),
                        DEBIAN.formatted("aarch64"))
                .map(Path::of)
                .filter(Files::isReadable)
                .findFirst();
    }

    /** Returns the variables of a process whose wall clock differs by a number of seconds. */
    static Map<String, String> ahead(int seconds) {
        return variables("FAKETIME", "+" + seconds + "s");
    }

    /** Returns the variables of a process whose wall clock differs by what a file contains, which it reads each second. */
    static Map<String, String> by(Path file) {
        return variables("FAKETIME_TIMESTAMP_FILE", file.toString());
    }

    private static Map<String, String> variables(String name, String value) {
        return Map.of(
                name,
                value,
                "LD_PRELOAD",
                library().orElseThrow().toString(),
                "FAKETIME_CACHE_DURATION",
                "1",
                "FAKETIME_DONT_FAKE_MONOTONIC",
                "1",
                "FAKETIME_FORCE_MONOTONIC_FIX",
                "0");
    }
}
