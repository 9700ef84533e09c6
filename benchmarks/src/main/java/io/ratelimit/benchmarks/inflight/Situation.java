package io.ratelimit.benchmarks.inflight;

/** What three instances of an application have to do. */
enum Situation {
    /** 100 slots, calls of 20 ms, and as many calls as need 90 % of the slots. */
    HOT_KEY("one hot key, 100 slots, 20 ms each, demand 90 %", 100, .9, 20, 20, 20, 0),
    /** 20 slots, calls of 10 ms to 10 s, as many as need all slots; every 20 s an instance is killed. */
    KILLED("long calls, 20 slots, an instance killed each 20 s", 20, 1, 10, 10_000, 60, 20);

    final String title;
    final int limit;
    final int seconds;
    final int killEverySeconds;
    private final double demand;
    private final double shortestMillis;
    private final double longestMillis;

    Situation(
            String title,
            int limit,
            double demand,
            double shortestMillis,
            double longestMillis,
            int seconds,
            int killEverySeconds) {
        this.title = title;
        this.limit = limit;
        this.demand = demand;
        this.shortestMillis = shortestMillis;
        this.longestMillis = longestMillis;
        this.seconds = seconds;
        this.killEverySeconds = killEverySeconds;
    }

    /** Returns how long a call takes, by a number from 0 to 1: as many calls from 10 to 100 ms as from 100 ms to 1 s. */
    long nanos(double at) {
        return (long) (1e6 * shortestMillis * Math.pow(longestMillis / shortestMillis, at));
    }

    /** Returns how many calls come in a second, in all instances. */
    double perSecond() {
        double ratio = longestMillis / shortestMillis;
        double meanMillis = ratio == 1 ? shortestMillis : shortestMillis * (ratio - 1) / Math.log(ratio);
        return demand * limit / meanMillis * 1_000;
    }
}
