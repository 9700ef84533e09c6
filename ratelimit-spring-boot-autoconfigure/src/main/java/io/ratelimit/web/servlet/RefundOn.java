package io.ratelimit.web.servlet;

import java.util.BitSet;
import java.util.List;

/** The responses for which a policy gives tokens back: by status, or by authentication. Immutable. */
final class RefundOn {

    private static final int FIRST = 100;
    private static final int END = 600;

    private static final String AUTHENTICATED = "authenticated";

    private final List<String> texts;
    private final BitSet statuses;

    private RefundOn(List<String> texts, BitSet statuses) {
        this.texts = List.copyOf(texts);
        this.statuses = statuses;
    }

    /**
     * Parses statuses such as {@code 404} and classes of statuses such as {@code 5xx}. A leading {@code !} excludes. A list
     * that only excludes contains all other statuses: {@code !401} is every status but 401. The only other value is
     * {@code authenticated}, and it must stand alone.
     *
     * @throws IllegalArgumentException if a text is malformed, no status is left, or {@code authenticated} is not alone
     */
    static RefundOn of(List<String> texts) {
        if (texts.contains(AUTHENTICATED)) {
            if (texts.size() > 1) {
                throw new IllegalArgumentException(
                        "refund-on must be either 'authenticated' alone or a list of statuses, but was " + texts);
            }
            return new RefundOn(texts, new BitSet());
        }
        BitSet statuses = new BitSet(END);
        statuses.set(FIRST, END, texts.stream().allMatch(RefundOn::isExcluded));
        texts.stream().filter(text -> !isExcluded(text)).forEach(text -> set(statuses, text, text, true));
        texts.stream().filter(RefundOn::isExcluded).forEach(text -> set(statuses, text, text.substring(1), false));
        if (statuses.isEmpty()) {
            throw new IllegalArgumentException("refund-on must leave a status, but excludes all: " + texts);
        }
        return new RefundOn(texts, statuses);
    }

    private static boolean isExcluded(String text) {
        return text.startsWith("!");
    }

    private static void set(BitSet statuses, String configured, String text, boolean value) {
        boolean isClass = text.length() == 3 && text.substring(1).equalsIgnoreCase("xx");
        int first = number(isClass ? text.charAt(0) + "00" : text);
        if (first < FIRST || first >= END) {
            throw new IllegalArgumentException(
                    "refund-on must be 'authenticated' or list statuses such as 404, 5xx or \"!401\", but was '"
                            + configured + "'");
        }
        statuses.set(first, isClass ? first + 100 : first + 1, value);
    }

    private static int number(String text) {
        return text.length() == 3 && text.chars().allMatch(c -> c >= '0' && c <= '9') ? Integer.parseInt(text) : -1;
    }

    /** @param authenticated whether the request got past authentication */
    boolean covers(int status, boolean authenticated) {
        return isAuthenticated() ? authenticated : statuses.get(Math.max(status, 0));
    }

    /** Returns whether authentication decides, and not the status. */
    boolean isAuthenticated() {
        return statuses.isEmpty();
    }

    /** Returns whether a request that the application serves as intended costs nothing: by its authentication or by status 200. */
    boolean coversSuccess() {
        return isAuthenticated() || statuses.get(200);
    }

    /** Returns whether the list only excludes statuses, and so contains all others. */
    boolean onlyExcludes() {
        return texts.stream().allMatch(RefundOn::isExcluded);
    }

    @Override
    public String toString() {
        return String.join(", ", texts);
    }
}
