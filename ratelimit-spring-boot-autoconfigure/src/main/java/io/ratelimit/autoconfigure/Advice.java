package io.ratelimit.autoconfigure;

import io.ratelimit.policy.RateLimitProperties;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.jspecify.annotations.Nullable;

/**
 * One piece of advice in the start-up log. Advice that differs only in the policy is one line, which names all policies.
 *
 * @param warning whether it is about a probable mistake
 * @param policy the name of the policy; null for advice about no policy, or about several
 * @param text a mistake and what to type, with the policy's name in quotes
 */
record Advice(boolean warning, @Nullable String policy, String text) {

    private static final String NAME = "{policy}";

    static Advice warning(@Nullable String policy, String text) {
        return new Advice(true, policy, text);
    }

    /** Logs the advice in its order, each text once. */
    static void log(Stream<Advice> advice, Log log) {
        Map<Advice, List<String>> policies = new LinkedHashMap<>();
        advice.forEach(each -> {
            List<String> names = policies.computeIfAbsent(each.withoutName(), text -> new ArrayList<>());
            if (each.policy != null && !names.contains(each.policy)) {
                names.add(each.policy);
            }
        });
        policies.forEach((each, names) -> {
            String line = each.line(names);
            if (each.warning) {
                log.warn(line);
            } else {
                log.info(line);
            }
        });
    }

    private Advice withoutName() {
        return policy == null
                ? this
                : new Advice(
                        warning,
                        null,
                        text.replace('"' + policy + '"', '"' + NAME + '"')
                                .replace("'" + policy + "'", "'" + NAME + "'")
                                .replace(
                                        RateLimitProperties.property(policy) + ".",
                                        RateLimitProperties.property(NAME) + "."));
    }

    private String line(List<String> names) {
        if (names.size() < 2) {
            return names.isEmpty() ? text : text.replace(NAME, names.get(0));
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
