package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** The rights that the documentation says are enough: they are, and each is needed. */
class RedisRightsTests {

    private static final TestRedis redis = TestRedis.start();
    private static final List<List<String>> lists = documented();
    private static final List<String> toConnect = lists.get(2);
    private static final ThrottlePolicy USER = ThrottlePolicy.of("per-user", BucketSpec.of("5/1h"), "user");
    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("7/1h"));

    enum Strategy {
        SCRIPT,
        TRANSACTION;

        List<String> rights() {
            return lists.get(ordinal());
        }
    }

    /** A strategy, and a right that it needs. */
    private record Needed(Strategy strategy, String right) {}

    static Stream<Needed> needed() {
        return Stream.of(Strategy.values())
                .flatMap(strategy -> strategy.rights().stream().map(right -> new Needed(strategy, right)))
                .filter(needed -> !needed.right.equals("+info"));
    }

    private static List<List<String>> documented() {
        try {
            String page = Files.readString(Path.of("../docs/redis.md"));
            String section = page.substring(page.indexOf("## What it may do"), page.indexOf("## All properties"));
            return Pattern.compile("`(\\+[^`]+)`")
                    .matcher(section)
                    .results()
                    .map(found -> List.of(found.group(1).split("\\s+")))
                    .toList();
        } catch (IOException missing) {
            throw new UncheckedIOException(missing);
        }
    }

    @BeforeEach
    void empty() {
        redis.connection().sync().flushall();
        redis.connection().sync().scriptFlush();
    }

    @AfterAll
    static void stop() {
        redis.close();
    }

    private static void allow(List<String> rights) {
        CommandArgs<byte[], byte[]> user =
                new CommandArgs<>(ByteArrayCodec.INSTANCE).add("SETUSER").add("shop");
        List.of("reset", "on", ">s3cret", "~ratelimit:*").forEach(user::add);
        rights.forEach(user::add);
        redis.connection().sync().dispatch(CommandType.ACL, new StatusOutput<>(ByteArrayCodec.INSTANCE), user);
    }

    private static List<String> with(List<String> rights) {
        List<String> all = new ArrayList<>(rights);
        all.addAll(toConnect);
        return all;
    }

    private static RedisBuckets buckets(Strategy strategy) {
        RedisStandaloneConfiguration where = new RedisStandaloneConfiguration("127.0.0.1", redis.port());
        where.setUsername("shop");
        where.setPassword("s3cret");
        LettuceConnectionFactory application = new LettuceConnectionFactory(where);
        RequestDeadline request = new RequestDeadline(new SystemTimeSource(), Duration.ofSeconds(5));
        return strategy == Strategy.SCRIPT
                ? RedisBuckets.byScript(application, "ratelimit:shop", "", request)
                : RedisBuckets.byTransaction(application, "ratelimit:shop", "", request);
    }

    /** All that an application does with its buckets. */
    private static void use(RedisBuckets buckets) {
        buckets.selfTest();
        BucketStore store = buckets.store();
        Charge user = Charge.of(USER, "alice", 2);
        List<Charge> both = List.of(user, Charge.of(GLOBAL, "", 2));
        Decision taken = store.take(both);
        assertThat(taken.allowed()).isTrue();
        assertThat(store.take(List.of(Charge.of(USER, "alice", 4))).allowed()).isFalse();
        assertThat(store.reserve(List.of(user.withMaxWait(Duration.ofHours(1)))).allowed())
                .isTrue();
        store.giveBack(taken.answers());
        assertThat(store.look(user).available()).isEqualTo(3);
        store.forget(user);
        assertThat(store.look(user).available()).isEqualTo(5);
    }

    @ParameterizedTest
    @EnumSource
    void whatIsDocumentedIsEnough(Strategy strategy) {
        allow(with(strategy.rights()));
        try (RedisBuckets buckets = buckets(strategy)) {
            assertThatCode(() -> use(buckets)).doesNotThrowAnyException();
            assertThat(buckets.memory().policy()).isEqualTo("noeviction");
        }
    }

    @ParameterizedTest
    @MethodSource("needed")
    void withoutOneOfThemItIsMisconfigured(Needed needed) {
        List<String> rights = with(needed.strategy.rights());
        rights.remove(needed.right);
        allow(rights);
        try (RedisBuckets buckets = buckets(needed.strategy)) {
            assertThatExceptionOfType(MisconfiguredRedisException.class).isThrownBy(() -> use(buckets));
        }
    }

    @ParameterizedTest
    @EnumSource
    void withoutInfoOnlyItsMemoryIsUnknown(Strategy strategy) {
        List<String> rights = with(strategy.rights());
        rights.remove("+info");
        allow(rights);
        try (RedisBuckets buckets = buckets(strategy)) {
            use(buckets);
            assertThatExceptionOfType(MisconfiguredRedisException.class).isThrownBy(buckets::memory);
        }
    }
}
