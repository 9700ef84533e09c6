package io.ratelimit.redis;

/**
 * How Redis's memory is bounded.
 *
 * @param policy what it does when it is full, such as noeviction
 * @param bounded whether it can become full
 */
public record RedisMemory(String policy, boolean bounded) {

    private static final String KEEP_ALL = "noeviction";

    /** From the text of INFO. */
    static RedisMemory read(String info) {
        String policy = KEEP_ALL;
        boolean bounded = false;
        for (String line : info.lines().toList()) {
            if (line.startsWith("maxmemory_policy:")) {
                policy = line.substring(line.indexOf(':') + 1).strip();
            } else if (line.startsWith("maxmemory:")) {
                bounded = !line.substring(line.indexOf(':') + 1).strip().equals("0");
            }
        }
        return new RedisMemory(policy, bounded);
    }

    /** Whether buckets may be thrown away that aren't full: all have a time to live, so no policy but one keeps them. */
    public boolean mayEvict() {
        return bounded && !policy.equals(KEEP_ALL);
    }
}
