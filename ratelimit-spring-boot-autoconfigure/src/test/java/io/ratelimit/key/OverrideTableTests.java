package io.ratelimit.key;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Keys;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.key.OverrideTable.Match;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.key.ip.IpNetwork;
import io.ratelimit.key.ip.KnownNetworks;
import io.ratelimit.policy.OverrideKeys;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OverrideTableTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("policy", BucketSpec.of("1/1h"), "some key");
    private static final int PREFIX = 64;
    private static final Match KEY = new Match(null, "a");
    private static final Match NETWORK = new Match(IpNetwork.of("10.0.0.0/8"), "");

    private final List<OverrideTable.Rule> rules = new ArrayList<>();
    private final List<IpNetwork> networks = new ArrayList<>();

    private OverrideTableTests with(List<KeyPart> parts, String capacity, String... key) {
        return with(parts, Mode.ENFORCE, capacity, key);
    }

    private OverrideTableTests with(List<KeyPart> parts, Mode mode, String capacity, String... key) {
        Match match = OverrideKeys.parse(parts, PREFIX, key);
        rules.add(new OverrideTable.Rule(match, capacity, BucketSpec.of(capacity + "/1h"), mode));
        return this;
    }

    private static List<KeyPart> parts(String... names) {
        return Stream.of(names).map(KeyPart::of).toList();
    }

    private long capacity(List<KeyPart> parts, FixedFacts request) {
        return charge(parts, request).spec().capacity();
    }

    private RequestKey key(List<KeyPart> parts, MissingKey onMissing) {
        return new RequestKey(
                parts,
                onMissing,
                new OverrideTable(parts, rules),
                null,
                null,
                List.of(),
                OverrideTableTests::failed,
                ThrottleListener.NONE);
    }

    private Charge charge(List<KeyPart> parts, FixedFacts request) {
        return key(parts, MissingKey.SHARED).charge(POLICY, 1, request);
    }

    private static FixedFacts from(String address) {
        String ip = new ClientIp(List.of(), "x-forwarded-for", PREFIX).canonical(address);
        return FixedFacts.NONE.withIp(ip);
    }

    @ParameterizedTest
    @CsvSource({
        "10.9.9.9, 8",
        "10.1.9.9, 16",
        "10.1.2.9, 24",
        "10.1.2.3, 32",
        "::ffff:10.1.2.3, 32",
        "11.0.0.0, 1",
        "2001:db8:9::1, 132",
        "2001:db8:1:9::1, 148",
        "2001:db8:1:2::1, 164",
        "2001:db8:1:2:3:4:5:6, 164",
        "2001:db9::1, 1",
        "::10.1.2.3, 1",
        "localhost, 1",
    })
    void theSmallestNetworkAroundAnAddressWins(String address, long capacity) {
        List<KeyPart> ip = parts("ip");
        with(ip, "8", "10.0.0.0/8").with(ip, "24", "10.1.2.0/24").with(ip, "16", "10.1.0.0/16");
        with(ip, "32", "10.1.2.3").with(ip, "132", "2001:db8::/32").with(ip, "148", "2001:db8:1::/48");
        with(ip, "164", "2001:db8:1:2:ffff::1");
        assertThat(capacity(ip, from(address))).isEqualTo(capacity);
    }

    @Test
    void aNetworkOfAllIpv4AddressesContainsNoIpv6Address() {
        List<KeyPart> ip = parts("ip");
        with(ip, "4", "0.0.0.0/0");
        assertThat(capacity(ip, from("203.0.113.7"))).isEqualTo(4);
        assertThat(capacity(ip, from("::1"))).isEqualTo(1);
        rules.clear();
        with(ip, "6", "::/0");
        assertThat(capacity(ip, from("203.0.113.7"))).isEqualTo(1);
        assertThat(capacity(ip, from("::1"))).isEqualTo(6);
    }

    @RepeatedTest(50)
    void agreesWithASearchOfAllNetworks(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        List<KeyPart> ip = parts("ip");
        for (int i = 2; i < 20; i++) {
            IpNetwork network = network(random);
            if (!networks.contains(network)) {
                networks.add(network);
                with(ip, Integer.toString(networks.size() + 1), network.toString());
            }
        }
        for (int i = 0; i < 200; i++) {
            String address = address(random);
            long expected = networks.stream()
                    .filter(network -> KnownNetworks.contains(network, address))
                    .max(Comparator.comparing(IpNetwork::prefix))
                    .map(network -> networks.indexOf(network) + 2L)
                    .orElse(1L);
            assertThat(capacity(ip, from(address)))
                    .as("seed %d, %s in %s", run.getCurrentRepetition(), address, networks)
                    .isEqualTo(expected);
        }
    }

    private static IpNetwork network(SplittableRandom random) {
        String address = address(random);
        int prefix = address.indexOf(':') < 0 ? 96 + random.nextInt(32) : random.nextInt(PREFIX);
        return requireNonNull(IpNetwork.of(address).widened(prefix));
    }

    /** Returns an address with few random bits, so that networks overlap. */
    private static String address(SplittableRandom random) {
        return random.nextBoolean()
                ? (128 * random.nextInt(2)) + "." + random.nextInt(2) + ".0." + random.nextInt(4)
                : (random.nextInt(2) * 8000) + ":" + random.nextInt(4) + "::" + random.nextInt(4);
    }

    @Test
    void eachPartOfAComposedKeyMatters() {
        List<KeyPart> pair = parts("ip", "user");
        with(pair, "2", "10.0.0.0/8", "Alice")
                .with(pair, "3", "10.0.0.0/8", "bob")
                .with(pair, "4", "10.1.2.3", "bob");
        assertThat(capacity(pair, from("10.1.2.3").withUser("alice"))).isEqualTo(2);
        assertThat(capacity(pair, from("10.1.2.4").withUser("BOB"))).isEqualTo(3);
        assertThat(capacity(pair, from("10.1.2.3").withUser("bob"))).isEqualTo(4);
        assertThat(capacity(pair, from("10.1.2.3").withUser("carol"))).isEqualTo(1);
        assertThat(capacity(pair, from("11.1.2.3").withUser("alice"))).isEqualTo(1);
    }

    @Test
    void aPlaceholderHasNoOverride() {
        List<KeyPart> user = parts("user");
        with(user, "9", "203.0.113.7").with(user, "8", "shared");
        assertThat(capacity(user, FixedFacts.NONE)).isEqualTo(1);
        RequestKey byIp = key(user, MissingKey.CLIENT_IP);
        assertThat(byIp.charge(POLICY, 1, FixedFacts.NONE).spec().capacity()).isEqualTo(1);
        assertThat(capacity(user, FixedFacts.NONE.withUser("203.0.113.7"))).isEqualTo(9);
        List<KeyPart> pair = parts("ip", "user");
        rules.clear();
        with(pair, "9", "203.0.113.0/24", "s");
        assertThat(capacity(pair, FixedFacts.NONE)).isEqualTo(1);
    }

    @Test
    void aMethodMatchesThoseOfRequests() {
        List<KeyPart> method = parts("method");
        with(method, "2", "HEAD").with(method, "3", "other");
        assertThat(capacity(method, FixedFacts.NONE)).isEqualTo(2);
        assertThat(capacity(method, FixedFacts.NONE.withMethod("FOO"))).isEqualTo(3);
        assertThat(capacity(method, FixedFacts.NONE.withMethod("PUT"))).isEqualTo(1);
    }

    @Test
    void aModeIsNeverStricterThanThePolicys() {
        OverrideTable.Rule off = new OverrideTable.Rule(KEY, "0", POLICY.spec(), Mode.OFF);
        OverrideTable.Rule shadow = new OverrideTable.Rule(KEY, "0", POLICY.spec(), Mode.SHADOW);
        OverrideTable.Rule enforced = new OverrideTable.Rule(KEY, "0", POLICY.spec(), Mode.ENFORCE);
        assertThat(off.charge(POLICY, "a", 1)).isNull();
        assertThat(shadow.charge(POLICY, "a", 1).policy().mode()).isEqualTo(Mode.SHADOW);
        assertThat(shadow.charge(POLICY.withMode(Mode.OFF), "a", 1)).isNull();
        assertThat(enforced.charge(POLICY.withMode(Mode.SHADOW), "a", 1)
                        .policy()
                        .mode())
                .isEqualTo(Mode.SHADOW);
    }

    @Test
    void aSpecStaysAndAModeFollowsThePolicyWhenThePolicyChanges() {
        BucketSpec spec = BucketSpec.of("9/1h");
        ThrottlePolicy changed = POLICY.withSpec(BucketSpec.of("7/1h"));
        for (Match match : List.of(KEY, NETWORK)) {
            OverrideTable.Rule override = new OverrideTable.Rule(match, "0", spec, Mode.ENFORCE);
            assertThat(override.charge(POLICY, "a", 1).spec()).isEqualTo(spec);
            assertThat(override.charge(changed, "a", 1).spec()).isEqualTo(spec);

            OverrideTable.Rule shadow = new OverrideTable.Rule(match, "0", null, Mode.SHADOW);
            String key = shadow.charge(POLICY, "a", 1).key();
            assertThat(shadow.charge(POLICY, "a", 1).spec()).isEqualTo(POLICY.spec());
            assertThat(shadow.charge(changed, "a", 1).spec()).isEqualTo(changed.spec());
            assertThat(shadow.charge(changed, "a", 1).policy().mode()).isEqualTo(Mode.SHADOW);
            assertThat(shadow.charge(changed, "a", 1).key()).isEqualTo(key);
        }
    }

    @Test
    void thePartThatAnOverrideLeavesOutFollowsThePolicy() {
        BucketSpec rate = BucketSpec.of("9/1h");
        ThrottlePolicy both = POLICY.withSpec(BucketSpec.of("1/1h").withInFlight(4));
        ThrottlePolicy changed = POLICY.withSpec(BucketSpec.of("7/1h").withInFlight(2));
        for (Match match : List.of(KEY, NETWORK)) {
            OverrideTable.Rule calls = new OverrideTable.Rule(match, "0", BucketSpec.inFlight(16), Mode.ENFORCE);
            assertThat(calls.charge(both, "a", 1).spec()).isEqualTo(both.spec().withInFlight(16));
            assertThat(calls.charge(changed, "a", 1).spec())
                    .isEqualTo(changed.spec().withInFlight(16));

            OverrideTable.Rule tokens = new OverrideTable.Rule(match, "0", rate, Mode.ENFORCE);
            assertThat(tokens.charge(both, "a", 1).spec()).isEqualTo(rate.withInFlight(4));
            assertThat(tokens.charge(changed, "a", 1).spec()).isEqualTo(rate.withInFlight(2));
        }
    }

    @ParameterizedTest
    @CsvSource({"9/1h, 0, 2", "9/1h, 1, 1", ", 0, 2"})
    void aChangeOfTheCallsInFlightReachesCallsThatWaitUnderAnOverride(String rate, int inFlight, int running) {
        BucketSpec written = rate == null ? null : BucketSpec.of(rate);
        BucketSpec spec = written == null || inFlight == 0 ? written : written.withInFlight(inFlight);
        for (Match match : List.of(KEY, NETWORK)) {
            OverrideTable.Rule rule = new OverrideTable.Rule(match, "0", spec, Mode.ENFORCE);
            assertThat(runningAfterAChangeOfInFlight(policy -> rule.charge(policy, "a", 1)))
                    .isEqualTo(running);
        }
    }

    /** Returns how many calls of two run when the policy's in-flight, 1, becomes 2 while the second call waits. */
    static int runningAfterAChangeOfInFlight(Function<ThrottlePolicy, Charge> charges) {
        ManualTimeSource time = new ManualTimeSource();
        ThrottlePolicy one =
                POLICY.withSpec(BucketSpec.of("8/1h").withInFlight(1)).withMaxWait(Duration.ofMinutes(1));
        Throttlers throttlers = Throttlers.local(List.of(one), time);
        PolicyThrottler policy = throttlers.get("policy");
        Decision first = throttlers.decide(List.of(charges.apply(policy.policy())));
        Charge second = charges.apply(policy.policy());
        CompletableFuture<Decision> waiting =
                CompletableFuture.supplyAsync(() -> acquire(throttlers, second), work -> new Thread(work).start());
        Awaitility.await().until(() -> time.waiting() == 1);

        policy.reconfigure(before -> before.withInFlight(2));

        int running = throttlers.inFlight("policy");
        first.release();
        assertThat(waiting).succeedsWithin(Duration.ofSeconds(10)).matches(Decision::allowed);
        return running;
    }

    private static Decision acquire(Throttlers throttlers, Charge charge) {
        try {
            return throttlers.acquire(List.of(charge));
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }

    /** An override in shadow mode denies nothing, so its keys can flood the policy. */
    @Test
    void aFloodInShadowModeEmptiesNoOtherBucket() {
        List<KeyPart> ip = parts("ip");
        with(ip, Mode.SHADOW, "1", "30.0.0.0/8").with(ip, Mode.SHADOW, "1", "31.0.0.1");
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        RequestKey key = key(ip, MissingKey.DENY);
        Throttlers throttlers = Throttlers.local(List.of(small), new ManualTimeSource());
        throttlers.decide(List.of(key.charge(small, 1, from("20.0.0.0"))));
        for (int i = 0; i < 60_000; i++) {
            throttlers.decide(List.of(key.charge(small, 1, from("30.0." + i / 250 + "." + i % 250))));
        }
        assertThat(throttlers
                        .decide(List.of(key.charge(small, 1, from("20.9.9.9"))))
                        .allowed())
                .isTrue();
        assertThat(key.charge(small, 1, from("31.0.0.1")).key()).isEqualTo(Keys.reserved("31.0.0.1"));
    }

    /** The flood empties all 4,096 overflow buckets of the policy, and all of one network. */
    @Test
    void aFloodOfOtherKeysEmptiesNoBucketOfAnOverride() {
        List<KeyPart> ip = parts("ip");
        with(ip, "2", "10.0.0.1").with(ip, "3", "10.0.0.0/8").with(ip, "4", "11.0.0.0/8");
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        RequestKey key = key(ip, MissingKey.DENY);
        Throttlers throttlers = Throttlers.local(List.of(small), new ManualTimeSource());
        for (String net : List.of("20.0.", "11.0.")) {
            for (int i = 0; i < 60_000; i++) {
                FixedFacts request = from(net + i / 250 + "." + i % 250);
                throttlers.decide(List.of(key.charge(small, net.equals("11.0.") ? 4 : 1, request)));
            }
        }
        assertThat(throttlers
                        .decide(List.of(key.charge(small, 1, from("20.9.9.9"))))
                        .allowed())
                .isFalse();
        assertThat(throttlers
                        .decide(List.of(key.charge(small, 1, from("11.9.9.9"))))
                        .allowed())
                .isFalse();
        assertThat(throttlers
                        .decide(List.of(key.charge(small, 2, from("10.0.0.1"))))
                        .allowed())
                .isTrue();
        assertThat(throttlers
                        .decide(List.of(key.charge(small, 3, from("10.9.9.9"))))
                        .allowed())
                .isTrue();
    }

    private static void failed(String policy, String what, String why) {
        throw new AssertionError(policy + what + why);
    }
}
