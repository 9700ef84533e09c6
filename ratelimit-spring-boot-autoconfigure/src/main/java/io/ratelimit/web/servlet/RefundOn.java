package io.ratelimit.web.servlet;

import java.util.BitSet;
import java.util.List;

/** The statuses of responses for which a policy gives back what it took. Immutable. */
public final class RefundOn {

    private static final int FIRST = 100;
    private static final int END = 600;

    private final BitSet statuses;
    private final String text;

    private RefundOn(BitSet statuses, String text) {
        this.statuses = statuses;
        this.text = text;
    }

    /**
     * Reads statuses and classes of statuses as they are written: {@code 404}, {@code 5xx}; with {@code !} in front they
     * are excluded. Where all are excluded ones, the others are meant: {@code !401} is every status but 401.
     *
     * @throws IllegalArgumentException if one can't be read, or none is left
     */
    public static RefundOn of(List<String> texts) {
        BitSet statuses = new BitSet(END);
        statuses.set(FIRST, END, texts.stream().allMatch(RefundOn::isExcluded));
        texts.stream().filter(text -> !isExcluded(text)).forEach(text -> set(statuses, text, text, true));
        texts.stream().filter(RefundOn::isExcluded).forEach(text -> set(statuses, text, text.substring(1), false));
        if (statuses.isEmpty()) {
            throw new IllegalArgumentException("refund-on must leave a status, but excludes all: " + texts);
        }
        return new RefundOn(statuses, String.join(", ", texts));
    }

    private static boolean isExcluded(String text) {
        return text.startsWith("!");
    }

    private static void set(BitSet statuses, String written, String text, boolean value) {
        boolean isClass = text.length() == 3 && text.substring(1).equalsIgnoreCase("xx");
        int first = number(isClass ? text.charAt(0) + "00" : text);
        if (first < FIRST || first >= END) {
            throw new IllegalArgumentException(
                    "refund-on must be of statuses such as 404, 5xx or \"!401\", but was '" + written + "'");
        }
        statuses.set(first, isClass ? first + 100 : first + 1, value);
    }

    private static int number(String text) {
        return text.length() == 3 && text.chars().allMatch(c -> c >= '0' && c <= '9') ? Integer.parseInt(text) : -1;
    }

    /** Whether a response of this status costs nothing. */
    boolean covers(int status) {
        return statuses.get(Math.max(status, 0));
    }

    /** As it is written. */
    @Override
    public String toString() {
        return text;
    }
}
