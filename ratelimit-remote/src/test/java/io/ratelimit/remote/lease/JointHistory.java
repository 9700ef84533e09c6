package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.GrantOracle;
import io.ratelimit.Rate;
import io.ratelimit.Specs;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.lease.JointInstance.Kind;
import io.ratelimit.remote.lease.JointSettlements.Taken;
import java.time.Duration;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;

/**
 * A history of {@link JointOracle}: a few instances, their clocks, and a bucket of each kind. All that happens follows
 * from the seed.
 */
final class JointHistory {

    static final long SECOND = 1_000_000;
    static final long DAY = 86_400 * SECOND;
    static final long START = 1_795_000_000_123_456L;
    static final int STEPS = 250;
    private static final List<String> ZONES =
            ZoneId.getAvailableZoneIds().stream().sorted().toList();

    /** The events of which every run must have some. */
    enum Event {
        LEASED,
        EXCUSED,
        EXACT,
        WAITING,
        RETURNED,
        RETURNED_TO_LEASE,
        DEBT,
        FALLBACK,
        ALL_DENIED
    }

    final int seed;
    final SplittableRandom random;
    final Map<Event, LongAdder> events;
    final boolean calm;
    final LeasePlace place;
    final Map<Kind, List<BucketSpec>> specs = new EnumMap<>(Kind.class);
    final Map<Kind, JointAccount> shared = new EnumMap<>(Kind.class);
    final Map<Kind, FailureRule> rules = new EnumMap<>(Kind.class);
    final Duration lease;
    final List<JointInstance> instances;
    final JointSettlements settlements = new JointSettlements(this);
    long server = START;
    int corrections;
    String step = "";

    /** @param place one that has no bucket */
    JointHistory(int seed, LeasePlace place, Map<Event, LongAdder> events) {
        this.place = place;
        this.events = events;
        this.seed = seed;
        this.random = new SplittableRandom(seed);
        this.calm = random.nextBoolean();
        for (Kind kind : Kind.values()) {
            boolean one = random.nextBoolean();
            List<BucketSpec> all = kind == Kind.LEASED ? leasedSpecs() : kind.isQuota() ? quotas() : small();
            specs.put(kind, one ? all.subList(0, 1) : all);
            rules.put(kind, random.nextBoolean() ? FailureRule.LOCAL : FailureRule.DENY);
            if (kind.isRemote()) {
                boolean exact = calm && kind != Kind.LEASED;
                shared.put(
                        kind,
                        new JointAccount(
                                specs.get(kind),
                                place,
                                exact,
                                events.get(Event.EXACT),
                                () -> 1_000 * server,
                                () -> server));
            }
        }
        long full = specs.get(Kind.LEASED).get(0).timeToFull().toNanos();
        long most = Math.min(full / 4, Duration.ofMinutes(1).toNanos() - 1);
        this.lease = Duration.ofNanos(1 + most / (1 + random.nextInt(10)));
        this.instances = Stream.generate(() -> new JointInstance(this))
                .limit(2 + random.nextInt(2))
                .toList();
    }

    private List<BucketSpec> small() {
        return Specs.smallSpecs(random);
    }

    private List<BucketSpec> leasedSpecs() {
        BucketSpec first = small().get(0);
        long tokens = random.nextInt(3) == 0 ? 500L + random.nextInt(1_500) : 10L + random.nextInt(200);
        BucketSpec large = first.with(new Rate(tokens, first.rate().period()), 50L * (1 + random.nextInt(8)));
        Rate faster = new Rate(10 * large.rate().tokens(), large.rate().period());
        return List.of(large, large.with(faster, large.capacity()), small().get(0));
    }

    private List<BucketSpec> quotas() {
        String unit = List.of("day", "week", "month").get(random.nextInt(3));
        ZoneId zone = ZoneId.of(ZONES.get(random.nextInt(ZONES.size())));
        return Stream.generate(() -> BucketSpec.of(random.nextInt(1, 20) + "/" + unit)
                        .withCapacity(random.nextInt(1, 50))
                        .withCalendar(zone))
                .limit(3)
                .toList();
    }

    void run() {
        for (int i = 0; i < STEPS; i++) {
            JointInstance instance = instances.get(random.nextInt(instances.size()));
            step = "seed %d, step %d, instance %d of %d, lease %s, %s"
                    .formatted(seed, i, instances.indexOf(instance), instances.size(), lease, instance.specs);
            advance(passed(instance), null);
            change(instance);
            if (!calm) {
                fault(instance);
            }
            int kind = random.nextInt(18);
            if (kind < 5 && !settlements.isEmpty()) {
                settlements.settle();
            } else if (kind < 8) {
                warmUp(instance);
            } else if (kind < 9) {
                drain(instance);
            } else {
                take(instance, random.nextBoolean(), random.nextInt(1, 32));
            }
        }
    }

    private void advance(long micros, JointInstance frozen) {
        server += micros;
        shared.values().forEach(account -> account.now());
        instances.stream().filter(instance -> instance != frozen).forEach(instance -> instance.advance(micros));
    }

    private long passed(JointInstance instance) {
        long leased = lease.toNanos() / 1_000;
        BucketSpec spec = instance.specs.get(random.nextBoolean() ? Kind.SHARED : Kind.MEMORY);
        CalendarClock quota = instance.accounts.get(random.nextBoolean() ? Kind.QUOTA : Kind.MEMORY_QUOTA).calendar;
        return switch (random.nextInt(24)) {
            case 0 -> leased * 998 / 1_000;
            case 1 -> leased / 2;
            case 2 -> leased * 3 / 2;
            case 3, 4, 5, 6, 7 -> random.nextLong(leased / 10 + 1);
            case 8, 9, 10 -> random.nextLong(Specs.tokenNanos(spec) / 500 + 2);
            case 11 -> Specs.nanosUntilNearBatch(spec, 1_000 * server, random) / 1_000;
            case 12 -> random.nextInt(3) == 0 ? quota.microsUntil(1, server) - random.nextInt(2) : 0;
            case 13 ->
                random.nextInt(8) == 0
                        ? random.nextLong(40 * DAY)
                        : spec.timeToFull().toNanos() / 1_000;
            default -> 0;
        };
    }

    private void change(JointInstance instance) {
        Kind kind = Kind.values()[random.nextInt(Kind.values().length)];
        if (random.nextInt(6) == 0) {
            List<BucketSpec> all = specs.get(kind);
            instance.specs.put(kind, all.get(random.nextInt(all.size())));
        }
        if (random.nextInt(60) == 0) {
            reset(instance, kind);
        }
        if (random.nextInt(30) == 0) {
            wallClockStep(instance);
        }
    }

    /** Sets the wall clock of an instance. In a history without faults it only goes forward, as quotas in memory follow it. */
    private void wallClockStep(JointInstance instance) {
        long step = random.nextLong(random.nextBoolean() ? 90_000 * SECOND : 400 * DAY);
        boolean back = !calm && random.nextBoolean();
        instance.setWallClock(instance.time.wallNanos() / 1_000 + (back ? -step : step));
        instance.readClocks();
    }

    private void reset(JointInstance instance, Kind kind) {
        JointAccount account = instance.accounts.get(kind);
        try {
            instance.store.reset(Charge.of(instance.policy(kind), "", 1));
            account.reset(kind == Kind.LEASED ? leased() : 0);
            advance(1, null); // in one microsecond no server is asked three times
        } catch (BackendException down) {
            assertThat(calm).as(step).isFalse();
        }
        if (kind.isRemote()) {
            instance.fallbacks.get(kind).reset(0);
        }
    }

    long leased() {
        return instances.stream().mapToLong(JointInstance::leased).sum();
    }

    private void fault(JointInstance instance) {
        instance.remote.loseNext = random.nextInt(60) == 0;
        instance.remote.down = random.nextInt(20) == 0 ? random.nextBoolean() : instance.remote.down;
        JointAccount leases = shared.get(Kind.LEASED);
        switch (random.nextInt(120)) {
            case 0 -> { // the machine is frozen and thawed, its clock stood still
                leases.excused += instance.leased();
                advance(passed(instance), instance);
            }
            case 1 -> { // the server's clock is set forward
                leases.excused += leased();
                server += random.nextLong(random.nextBoolean() ? 60 * SECOND : 40 * DAY);
            }
            case 2 -> { // and back
                server -= random.nextLong(random.nextBoolean() ? 60 * SECOND : 40 * DAY);
                corrections++;
            }
            case 3 -> { // the store loses a bucket
                Kind kind = Kind.values()[random.nextInt(3)];
                place.remove(Charge.of(instance.policy(kind), "", 1));
                shared.get(kind).reset(kind == Kind.LEASED ? leased() : 0);
                advance(1, null);
            }
            default -> {}
        }
        shared.values().forEach(account -> account.now());
    }

    private void warmUp(JointInstance instance) {
        for (int i = random.nextInt(30); i >= 0 && take(instance, false, 1); i--) {}
    }

    /** Takes from one bucket until it denies, so that settlements meet empty buckets and debts. */
    private void drain(JointInstance instance) {
        int kind = random.nextInt(Kind.values().length);
        for (int i = 0; i < 60 && take(instance, false, 1 << kind); i++) {}
    }

    /** @param kinds one bit for each bucket to take from */
    private boolean take(JointInstance instance, boolean ahead, int kinds) {
        List<Charge> charges = new ArrayList<>();
        for (Kind kind : Kind.values()) {
            if ((kinds >> kind.ordinal() & 1) == 1) {
                charges.add(charge(instance, kind, ahead));
                prepare(instance, charges.get(charges.size() - 1));
            }
        }
        long leasesOut = leased();
        instance.remote.decided = decision -> decision.answers()
                .forEach(answer -> account(instance, answer).check(answer, ahead, decision.allowed(), step));
        Decision decision = ahead ? instance.store.reserve(charges) : instance.store.take(charges);
        instance.remote.decided = any -> {};
        for (Answer answer : decision.answers()) {
            assertThat(answer.fallback() && calm).as(step).isFalse();
            if (!Kind.of(answer.policy()).isRemote()) {
                account(instance, answer).check(answer, ahead, decision.allowed(), step);
            }
        }
        charges.forEach(charge -> conclude(instance, charge));
        if (decision.allowed()) {
            decision.answers().forEach(answer -> granted(instance, answer, leasesOut));
        } else if (charges.size() > 1) {
            events.get(Event.ALL_DENIED).increment();
        }
        return decision.allowed();
    }

    private Charge charge(JointInstance instance, Kind kind, boolean ahead) {
        BucketSpec spec = instance.specs.get(kind);
        long cost = random.nextInt(4) > 0 ? 1 : 1 + random.nextLong(Math.max(spec.capacity() / 3, 1));
        long wait = !ahead || kind == Kind.LEASED
                ? 0
                : Specs.waitNanos(instance.accounts.get(kind).counted(spec), random);
        return Charge.of(instance.policy(kind), "", cost).withMaxWait(Duration.ofNanos(wait / 1_000 * 1_000));
    }

    private JointAccount account(JointInstance instance, Answer answer) {
        Kind kind = Kind.of(answer.policy());
        return (answer.fallback() ? instance.fallbacks : instance.accounts).get(kind);
    }

    /** Counts with the spec of the call, and with that of the bucket, which may be forgotten if it is full. */
    void prepare(JointInstance instance, Charge charge) {
        Kind kind = Kind.of(charge.policy());
        JointAccount account = instance.accounts.get(kind);
        account.oracle.use(account.counted(charge.spec()), account.now());
        JointAccount fallback = instance.fallbacks.get(kind);
        fallback.oracle.use(fallback.counted(charge.spec()), fallback.now());
        if (kind.isRemote() && account.specs.size() > 1) {
            account.oracle.use(account.counted(account.written), account.now());
            if (account.origin != null) {
                account.oracle.use(account.counted(account.origin), account.now());
            }
            if (place.value(charge) == null) {
                account.forgotten(charge.spec());
            }
        }
    }

    /** Notes the spec of the value, and until when it counts. */
    void conclude(JointInstance instance, Charge charge) {
        Kind kind = Kind.of(charge.policy());
        JointAccount account = instance.accounts.get(kind);
        byte[] value = kind.isRemote() && account.specs.size() > 1 ? place.value(charge) : null;
        account.written = value == null ? account.written : place.spec(value, account.specs);
        account.origin = value == null ? null : place.origin(value, server);
        if (kind == Kind.LEASED && instance.leased() > 0) {
            long now = account.now();
            account.oracle.hold(charge.spec(), now, now + instance.lease.toNanos());
        }
    }

    LeasePlace.Kept kept(Charge charge) {
        return place.kept(place.value(charge), charge.spec(), server);
    }

    private void granted(JointInstance instance, Answer answer, long leasesOut) {
        JointAccount account = account(instance, answer);
        Charge charge = answer.charge();
        boolean isLeased = Kind.of(charge.policy()) == Kind.LEASED
                && !answer.fallback()
                && answer.receipt() instanceof LeasedBucket.Lease;
        events.get(answer.fallback() ? Event.FALLBACK : isLeased ? Event.LEASED : Event.WAITING)
                .add(answer.fallback() || isLeased || answer.waitNanos() > 0 ? 1 : 0);
        account.excused = Math.min(account.excused, leasesOut);
        if (isLeased && charge.cost() <= account.excused) {
            account.excused -= charge.cost();
            events.get(Event.EXCUSED).increment();
            return;
        }
        long due = account.after(answer.waitNanos());
        GrantOracle.Grant grant =
                account.oracle.granted(account.counted(charge.spec()), charge.cost(), account.now(), due, step);
        settlements.add(new Taken(instance, account, answer, grant, account.resets, corrections));
    }
}
