package io.ratelimit.annotation;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import java.util.Collection;
import java.util.stream.Collectors;

/**
 * What to say of an annotation that names a policy which annotations can't name.
 *
 * @param place the annotation, as messages name it
 */
record UnknownName(RateLimitedReading reading, String place) {

    InvalidRateLimitedException of(String name) {
        if (name.indexOf('/') >= 0) {
            return new InvalidRateLimitedException(
                    place + " names the throttle policy '" + name + "', which reads like a rate.",
                    "Say '@RateLimited(rate = \"" + name + "\")', if it is one.");
        }
        ThrottlePolicy own = reading.ownLimits().find(name);
        return own != null ? ofAnotherPlace(own) : isOfRequests(name) ? ofRequests(name) : ofNothing(name);
    }

    private InvalidRateLimitedException ofAnotherPlace(ThrottlePolicy own) {
        BucketSpec spec = own.spec();
        boolean burst = spec.capacity() != spec.rate().tokens();
        return new InvalidRateLimitedException(
                place + " names '" + own.name() + "', which is no policy of the configuration: it is the limit that"
                        + " another @RateLimited has of its own.",
                "To share it, say '@RateLimited(name = \"" + own.name() + "\", rate = \"" + spec.rate() + "\""
                        + (burst ? ", capacity = \"" + spec.capacity() + "\"" : "")
                        + (own.isGlobal() ? "" : ", key = …")
                        + ")' in both places, or move it to 'ratelimit.policies." + own.name()
                        + "' with 'applies-to: annotated'.");
    }

    private InvalidRateLimitedException ofRequests(String name) {
        return new InvalidRateLimitedException(
                place + " names the throttle policy '" + name
                        + "', which limits requests: a call within a request would" + " be charged twice.",
                "Say 'ratelimit.policies." + name + ".applies-to: annotated', if the policy is for annotated methods"
                        + " alone, or name another.");
    }

    private InvalidRateLimitedException ofNothing(String name) {
        Collection<String> known = reading.policies().keySet();
        return new InvalidRateLimitedException(
                place + " names the throttle policy '" + name + "', and there is none of that name. "
                        + (known.isEmpty()
                                ? "There are none for annotated methods."
                                : known.stream()
                                        .sorted()
                                        .collect(Collectors.joining(", ", "For annotated methods there are: ", "."))),
                "Define 'ratelimit.policies." + name + "' with 'applies-to: annotated', or correct the name"
                        + NearestName.of(name, known)
                                .map(near -> ": '" + near + "', perhaps.")
                                .orElse("."));
    }

    private boolean isOfRequests(String name) {
        return reading.throttlers().all().stream()
                .anyMatch(throttler -> throttler.policy().name().equals(name));
    }
}
