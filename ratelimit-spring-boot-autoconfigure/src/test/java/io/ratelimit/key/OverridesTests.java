package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OverridesTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("policy", BucketSpec.of("1/1h"), "some key");
    private static final int PREFIX = 64;

    private final Map<OverriddenKey, KeyOverride> overrides = new HashMap<>();

    private OverridesTests with(List<KeyPart> parts, String capacity, String... key) {
        OverriddenKey read = new OverrideKeys(parts, true, PREFIX).read(List.of(key));
        BucketSpec spec = BucketSpec.of(capacity + "/1h");
        overrides.put(read, read.network() == null ? KeyOverride.ofKeys(spec) : KeyOverride.ofNetworks(spec, capacity));
        return this;
    }

    private static List<KeyPart> parts(String... names) {
        return Stream.of(names).map(KeyPart::of).toList();
    }

    private long capacity(List<KeyPart> parts, FixedFacts request) {
        return charge(parts, request).spec().capacity();
    }

    private Charge charge(List<KeyPart> parts, FixedFacts request) {
        return new RequestKey(
                        parts,
                        MissingKey.SHARED,
                        new Overrides(overrides, parts),
                        null,
                        OverridesTests::failed,
                        ThrottleListener.NONE)
                .charge(POLICY, 1, request);
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
    void theSmallestNetworkAroundAnAddressHolds(String address, long capacity) {
        List<KeyPart> ip = parts("ip");
        with(ip, "8", "10.0.0.0/8").with(ip, "24", "10.1.2.0/24").with(ip, "16", "10.1.0.0/16");
        with(ip, "32", "10.1.2.3").with(ip, "132", "2001:db8::/32").with(ip, "148", "2001:db8:1::/48");
        with(ip, "164", "2001:db8:1:2:ffff::1");
        assertThat(capacity(ip, from(address))).isEqualTo(capacity);
    }

    @Test
    void allAddressesOfIpv4AreNoneOfIpv6() {
        List<KeyPart> ip = parts("ip");
        with(ip, "4", "0.0.0.0/0");
        assertThat(capacity(ip, from("203.0.113.7"))).isEqualTo(4);
        assertThat(capacity(ip, from("::1"))).isEqualTo(1);
        overrides.clear();
        with(ip, "6", "::/0");
        assertThat(capacity(ip, from("203.0.113.7"))).isEqualTo(1);
        assertThat(capacity(ip, from("::1"))).isEqualTo(6);
    }

    @RepeatedTest(50)
    void agreesWithLookingAtEveryNetwork(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        List<KeyPart> ip = parts("ip");
        for (int i = 2; i < 20; i++) {
            with(ip, "" + i, network(random));
        }
        for (int i = 0; i < 200; i++) {
            String address = address(random);
            long expected = overrides.keySet().stream()
                    .filter(key -> key.network() != null && key.network().contains(IpAddress.of(address)))
                    .max((a, b) ->
                            Integer.compare(a.network().prefix(), b.network().prefix()))
                    .map(key -> overrides.get(key).charge(POLICY, "", 1).spec().capacity())
                    .orElse(1L);
            assertThat(capacity(ip, from(address)))
                    .as("seed %d, %s in %s", run.getCurrentRepetition(), address, overrides.keySet())
                    .isEqualTo(expected);
        }
    }

    private static String network(SplittableRandom random) {
        IpAddress address = IpAddress.of(address(random));
        int prefix = address.isIpv4() ? 96 + random.nextInt(32) : random.nextInt(PREFIX);
        return IpNetwork.around(address, prefix).toString();
    }

    /** Of few bits, so that networks meet. */
    private static String address(SplittableRandom random) {
        return random.nextBoolean()
                ? (128 * random.nextInt(2)) + "." + random.nextInt(2) + ".0." + random.nextInt(4)
                : (random.nextInt(2) * 8000) + ":" + random.nextInt(4) + "::" + random.nextInt(4);
    }

    @Test
    void eachPartOfAComposedKeyCounts() {
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
    void whatStandsInForAMissingPartHasNoOverride() {
        List<KeyPart> user = parts("user");
        with(user, "9", "203.0.113.7").with(user, "8", "shared");
        assertThat(capacity(user, FixedFacts.NONE)).isEqualTo(1);
        RequestKey byIp = new RequestKey(
                user,
                MissingKey.CLIENT_IP,
                new Overrides(overrides, user),
                null,
                OverridesTests::failed,
                ThrottleListener.NONE);
        assertThat(byIp.charge(POLICY, 1, FixedFacts.NONE).spec().capacity()).isEqualTo(1);
        assertThat(capacity(user, FixedFacts.NONE.withUser("203.0.113.7"))).isEqualTo(9);
        List<KeyPart> pair = parts("ip", "user");
        overrides.clear();
        with(pair, "9", "203.0.113.0/24", "s");
        assertThat(capacity(pair, FixedFacts.NONE)).isEqualTo(1);
    }

    @Test
    void methodsAreFoldedAsThoseOfRequests() {
        List<KeyPart> method = parts("method");
        with(method, "2", "HEAD").with(method, "3", "other");
        assertThat(capacity(method, FixedFacts.NONE)).isEqualTo(2);
        assertThat(capacity(method, FixedFacts.NONE.withMethod("FOO"))).isEqualTo(3);
        assertThat(capacity(method, FixedFacts.NONE.withMethod("PUT"))).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "ip     | 10.0.0.1/8        | '10.0.0.1/8' has bits behind its prefix: say '10.0.0.0/8', or '10.0.0.1' for the one address",
                "ip     | alice             | 'alice' is neither an address nor a network: say '10.0.0.0/8', '192.0.2.7' or '2001:db8::/32', for example; names are not resolved",
                "ip     | 2001:db8:1:2::/65 | '2001:db8:1:2::/65' is smaller than what counts as one client: say '2001:db8:1:2::/64', or raise 'ratelimit.client-ip.ipv6-prefix'",
                "user   | ~ ~               | user must be more than blanks",
                "method | get               | 'get' is no method that HTTP defines: say 'GET', for example, or 'other' for all that it doesn't",
            })
    void whatNoRequestEqualsIsRefused(String part, String text, String message) {
        OverrideKeys keys = new OverrideKeys(parts(part), true, PREFIX);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> keys.read(List.of(text)))
                .withMessage(message);
    }

    @Test
    void aKeyHasAsManyTextsAsThePolicysHasParts() {
        OverrideKeys pair = new OverrideKeys(parts("ip", "user"), true, PREFIX);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> pair.read(List.of("10.0.0.0/8")))
                .withMessage("each of 'keys' must be a list of 2 texts: [ip, user], as the policy's key is, but was one"
                        + " text");
        OverrideKeys one = new OverrideKeys(parts("user"), true, PREFIX);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> one.read(List.of("a", "b")))
                .withMessage("each of 'keys' must be one text, the user, as the policy's key is, but was a list of 2");
    }

    @Test
    void anAddressIsOneKeyWhateverItsSpelling() {
        OverrideKeys ip = new OverrideKeys(parts("ip"), true, PREFIX);
        OverriddenKey v4 = ip.read(List.of("10.0.0.1"));
        assertThat(ip.read(List.of("::ffff:a00:1"))).isEqualTo(v4);
        assertThat(ip.read(List.of("10.0.0.1/32"))).isEqualTo(v4);
        OverriddenKey v6 = ip.read(List.of("2001:db8:1:2::3"));
        assertThat(ip.read(List.of("2001:DB8:1:2:ffff::"))).isEqualTo(v6);
        assertThat(ip.read(List.of("2001:db8:1:2::/64"))).isEqualTo(v6);
    }

    @Test
    void aModeIsNeverStricterThanThePolicys() {
        KeyOverride override = KeyOverride.ofKeys(POLICY.spec());
        assertThat(override.withMode(Mode.OFF).charge(POLICY, "a", 1)).isNull();
        assertThat(override.withMode(Mode.SHADOW)
                        .charge(POLICY, "a", 1)
                        .policy()
                        .mode())
                .isEqualTo(Mode.SHADOW);
        assertThat(override.withMode(Mode.SHADOW).charge(POLICY.withMode(Mode.OFF), "a", 1))
                .isNull();
    }

    @Test
    void aLimitOfItsOwnStaysAndAModeFollowsThePolicyWhenThatIsChanged() {
        BucketSpec own = BucketSpec.of("9/1h");
        ThrottlePolicy changed = POLICY.withSpec(BucketSpec.of("7/1h"));
        for (KeyOverride override : List.of(KeyOverride.ofKeys(own), KeyOverride.ofNetworks(own, "0"))) {
            assertThat(override.charge(POLICY, "a", 1).spec()).isEqualTo(own);
            assertThat(override.charge(changed, "a", 1).spec()).isEqualTo(own);
        }
        for (KeyOverride override : List.of(KeyOverride.ofKeys(null), KeyOverride.ofNetworks(null, "0"))) {
            KeyOverride shadow = override.withMode(Mode.SHADOW);
            String key = shadow.charge(POLICY, "a", 1).key();
            assertThat(shadow.charge(POLICY, "a", 1).spec()).isEqualTo(POLICY.spec());
            assertThat(shadow.charge(changed, "a", 1).spec()).isEqualTo(changed.spec());
            assertThat(shadow.charge(changed, "a", 1).policy().mode()).isEqualTo(Mode.SHADOW);
            assertThat(shadow.charge(changed, "a", 1).key()).isEqualTo(key);
        }
    }

    /** Those whose limit refuses nothing may call as often as they like: that must not be at others' expense. */
    @Test
    void aFloodInShadowModeEmptiesNobodysBucket() {
        List<KeyPart> ip = parts("ip");
        with(ip, "1", "30.0.0.0/8").with(ip, "1", "31.0.0.1");
        overrides.replaceAll((key, override) -> override.withMode(Mode.SHADOW));
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        RequestKey key = new RequestKey(
                ip, MissingKey.DENY, new Overrides(overrides, ip), null, OverridesTests::failed, ThrottleListener.NONE);
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

    /** All 4,096 overflow buckets are empty, and all those of one network. */
    @Test
    void aFloodOfOtherKeysEmptiesNoBucketOfAnOverride() {
        List<KeyPart> ip = parts("ip");
        with(ip, "2", "10.0.0.1").with(ip, "3", "10.0.0.0/8").with(ip, "4", "11.0.0.0/8");
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        RequestKey key = new RequestKey(
                ip, MissingKey.DENY, new Overrides(overrides, ip), null, OverridesTests::failed, ThrottleListener.NONE);
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
