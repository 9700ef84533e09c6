package io.ratelimit.autoconfigure;

import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.jspecify.annotations.Nullable;

/**
 * The advice of the start-up log, in the order in which it is added. Advice that differs only in the policy is one line, which
 * names all policies. A text is a mistake and what to type, with {@code <policy>} in place of the policy's name.
 */
final class Advice {

    private static final String NAME = "<policy>";

    private final Map<String, Line> lines = new LinkedHashMap<>();

    private record Line(boolean warning, Set<String> policies) {}

    /**
     * @param policy null for advice about no policy, or about several
     * @param text null for none
     */
    void warn(@Nullable String policy, @Nullable String text) {
        add(true, text, policy);
    }

    void inform(String policy, @Nullable String text) {
        add(false, text, policy);
    }

    private void add(boolean warning, @Nullable String text, @Nullable String policy) {
        if (text != null) {
            Line line = lines.computeIfAbsent(text, added -> new Line(warning, new LinkedHashSet<>()));
            if (policy != null) {
                line.policies.add(policy);
            }
        }
    }

    void log(Log log) {
        lines.forEach((text, line) -> {
            if (line.warning) {
                log.warn(named(text, line.policies));
            } else {
                log.info(named(text, line.policies));
            }
        });
    }

    private static String named(String text, Set<String> names) {
        if (names.size() < 2) {
            return names.isEmpty() ? text : text.replace(NAME, names.iterator().next());
        }
        String all = names.stream().map(name -> "'" + name + "'").collect(Collectors.joining(", "));
        String one = "hrottle policy '" + NAME + "'";
        return (text.startsWith("T" + one) ? text.replace("T" + one, "Throttle policies " + all + ": each") : text)
                .replace("t" + one, "throttle policies " + all)
                .replace(all + " is ", all + " are ")
                .replace(all + ", which has ", all + ", which have ")
                .replace(NAME, "NAME");
    }
}
