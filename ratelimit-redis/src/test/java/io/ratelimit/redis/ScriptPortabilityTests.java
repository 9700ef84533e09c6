package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BucketSpec;
import io.ratelimit.GrantOracle;
import io.ratelimit.Specs;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The script on Lua 5.1, which Redis has, and on Lua 5.4, which has integers beside floats. Random histories have the same
 * replies and values on both, and their beginning on a real Redis. With {@code -Dratelimit.test.steps=1000000} there are so
 * many steps. The environment variables {@code RATELIMIT_TEST_LUA51} and {@code RATELIMIT_TEST_LUA54} name interpreters.
 */
@Tag("slow")
class ScriptPortabilityTests {

    private static final int RUN = 100;
    private static final int RUNS_ON_REDIS = 30;
    private static final Pattern BAD_VALUE = Pattern.compile("BADVALUE the value of a key of ratelimit is no bucket");
    private static final HexFormat HEX = HexFormat.of();

    @TempDir
    private Path directory;

    @BeforeEach
    void writeFiles() throws IOException {
        Files.write(directory.resolve("bucket.lua"), RedisScript.read(RedisScript.RESOURCE));
        copy("/histories.lua");
        SplittableRandom random = new SplittableRandom(1);
        Stream<BucketSpec> specs = Stream.concat(
                Stream.generate(() -> Specs.smallSpec(random)).limit(100),
                Stream.generate(() -> Specs.randomSpec(random)).limit(200));
        Files.write(
                directory.resolve("specs"),
                specs.map(RedisTickScale::of)
                        .map(ticks -> ticks.perStep() + " " + ticks.perToken() + " " + ticks.capacity() + " "
                                + ticks.stepMicros())
                        .toList());
    }

    private void copy(String name) throws IOException {
        try (InputStream in = ScriptPortabilityTests.class.getResourceAsStream(name)) {
            Files.copy(in, directory.resolve(name.replace("/", "")));
        }
    }

    private static Path interpreter(String version) {
        String variable = "RATELIMIT_TEST_LUA" + version.replace(".", "");
        String named = System.getenv(variable);
        Stream<Path> candidates = named != null
                ? Stream.of(Path.of(named))
                : Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
                        .map(folder -> Path.of(folder, "lua" + version));
        Optional<Path> found = candidates.filter(Files::isExecutable).findFirst();
        assumeTrue(found.isPresent(), "lua" + version + " is not installed, and " + variable + " names none");
        return found.get();
    }

    private BufferedReader histories(Path interpreter, int steps) throws IOException {
        return new ProcessBuilder(
                        interpreter.toString(),
                        "histories.lua",
                        "bucket.lua",
                        "specs",
                        Integer.toString(steps / RUN),
                        Integer.toString(RUN))
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .start()
                .inputReader(StandardCharsets.ISO_8859_1);
    }

    @Test
    void theScriptIsSentWithoutItsComments() {
        assertThat(new String(RedisScript.read(RedisScript.RESOURCE), StandardCharsets.UTF_8).lines())
                .noneMatch(line -> line.strip().startsWith("--"))
                .contains("local function take_at_once(key, now, n, s, full, price, wait, spec)")
                .hasSizeGreaterThan(600);
    }

    @Test
    void lua54RepliesAndKeepsTheSameAsLua51() throws IOException {
        Path lua51 = interpreter("5.1");
        Path lua54 = interpreter("5.4");
        int steps = GrantOracle.steps(20_000);
        try (BufferedReader on51 = histories(lua51, steps);
                BufferedReader on54 = histories(lua54, steps)) {
            int read = 0;
            for (String line = on51.readLine(); line != null; line = on51.readLine()) {
                String other = on54.readLine();
                if (!line.equals(other)) {
                    assertThat(other).as("step %d", read).isEqualTo(line);
                }
                read++;
            }
            assertThat(on54.readLine()).isNull();
            assertThat(read).isEqualTo(steps);
        }
    }

    @Test
    void redisRepliesAndKeepsTheSameAsLua51() throws IOException {
        RedisCommands<byte[], byte[]> redis = TestRedis.shared().connection().sync();
        byte[] script = Files.readAllBytes(directory.resolve("bucket.lua"));
        int compared = 0;
        try (BufferedReader lines = histories(interpreter("5.1"), RUNS_ON_REDIS * RUN)) {
            String prefix = "";
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Step step = Step.of(line);
                if (step.run % 2 == 0) {
                    continue; // its values expire by a time that isn't the server's
                }
                if (step.number == 1) {
                    prefix = TestRedis.prefix();
                }
                assertThat(step.on(redis, script, prefix)).as(line).isEqualTo(step.reply);
                for (int i = 0; i < step.values.size(); i++) {
                    byte[] value = redis.get(key(prefix, "user" + i));
                    assertThat(value == null ? "" : HEX.formatHex(value))
                            .as(line)
                            .isEqualTo(step.values.get(i));
                }
                compared++;
            }
        }
        assertThat(compared).isEqualTo(RUNS_ON_REDIS / 2 * RUN);
    }

    private static byte[] key(String prefix, String name) {
        return (prefix + name).getBytes(StandardCharsets.UTF_8);
    }

    /** A line of the histories. */
    private record Step(
            int run,
            int number,
            String operation,
            List<String> keys,
            List<String> arguments,
            String time,
            String reply,
            List<String> values) {

        static Step of(String line) {
            String[] parts = line.split(" ", -1);
            assertThat(parts).as(line).hasSize(9);
            return new Step(
                    Integer.parseInt(parts[0]),
                    Integer.parseInt(parts[1]),
                    parts[2],
                    List.of(parts[3].split(",")),
                    List.of(parts[4].split(",")),
                    parts[5],
                    parts[6],
                    List.of(parts[7], parts[8]));
        }

        /** Does the same on a server, and returns the reply as in a line. */
        String on(RedisCommands<byte[], byte[]> redis, byte[] script, String prefix) {
            if (operation.equals("set")) {
                redis.set(key(prefix, keys.get(0)), HEX.parseHex(arguments.get(0)));
                return "";
            }
            CommandArgs<byte[], byte[]> call =
                    new CommandArgs<>(ByteArrayCodec.INSTANCE).add(script).add(keys.size());
            keys.forEach(name -> call.addKey(key(prefix, name)));
            arguments.forEach(argument -> call.add(HEX.parseHex(argument)));
            call.add(operation).add(time);
            try {
                return String.join(",", redis.dispatch(CommandType.EVAL, new Texts(), call));
            } catch (RedisCommandExecutionException refused) {
                Matcher reason = BAD_VALUE.matcher(refused.getMessage());
                assertThat(reason.find()).as(refused.getMessage()).isTrue();
                return "error:" + HEX.formatHex(reason.group().getBytes(StandardCharsets.US_ASCII));
            }
        }
    }

    /** The texts of a reply, which is a text, a list of texts, or nil. */
    private static final class Texts extends CommandOutput<byte[], byte[], List<String>> {

        Texts() {
            super(ByteArrayCodec.INSTANCE, new ArrayList<>());
        }

        @Override
        public void multi(int count) {}

        @Override
        public void set(ByteBuffer text) {
            if (text != null) {
                byte[] bytes = new byte[text.remaining()];
                text.get(bytes);
                output.add(HEX.formatHex(bytes));
            }
        }
    }
}
