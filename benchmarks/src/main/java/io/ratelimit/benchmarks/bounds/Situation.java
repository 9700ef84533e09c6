package io.ratelimit.benchmarks.bounds;

import io.ratelimit.benchmarks.bounds.Subject.Place;
import org.jspecify.annotations.Nullable;

/** What happens to a limiter while it is asked for more than its limit, in the order of the table. */
enum Situation {
    ONE_THREAD("one-thread"),
    EIGHT_THREADS("eight-threads"),
    TWO_INSTANCES("two-instances"),
    CLOCK("clock"),
    OUTAGE("outage"),
    RESTART("restart"),
    LOWERED("lowered"),
    FORGOTTEN("forgotten"),
    EDGE("edge");

    /** The client whose calls are counted. */
    static final String KEY = "client";

    private final String id;

    Situation(String id) {
        this.id = id;
    }

    /** Returns the name in commands and files. */
    String id() {
        return id;
    }

    Limit limit() {
        return this == FORGOTTEN ? Limit.of(500, 10) : Limit.of(500, 1);
    }

    /** Returns why a limiter can't be run in this situation, or null if it can. */
    @Nullable
    String obstacle(Subject subject) {
        if (subject == Subject.NGINX && Nginx.binary().isEmpty()) {
            return "no nginx here";
        }
        return switch (this) {
            case CLOCK -> OffClock.library().isEmpty() ? "no libfaketime here" : null;
            case OUTAGE -> subject.place().isShared() ? null : "no backend";
            case FORGOTTEN -> subject.hasKeys() ? null : "no keys";
            default -> null;
        };
    }

    /** Returns how many other keys call in {@link #FORGOTTEN}: several times as many as the limiter keeps. */
    static int otherKeys(Place place) {
        return switch (place) {
            case MEMORY -> 100_000;
            case REDIS -> 20_000;
            case PROXY, H2, POSTGRES -> 3_000;
        };
    }
}
