package io.ratelimit.autoconfigure;

import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.autoconfigure.AutoConfigurationImportFilter;
import org.springframework.boot.autoconfigure.AutoConfigurationMetadata;

/**
 * Leaves auto-configurations of Spring Boot out of the tests' applications, which takes some 12 % of the time of a start
 * away. Those that create proxies, of transactions and of repositories, stay.
 */
final class UnneededAutoConfigurations implements AutoConfigurationImportFilter {

    private static final Pattern UNNEEDED = Stream.of(
                    "actuate.autoconfigure.(beans|condition|context|endpoint.jmx|env|management|sbom|scheduling|startup).*",
                    "actuate.autoconfigure.web.(exchanges|mappings).*",
                    "autoconfigure.(admin|info|jmx|task.TaskScheduling).*",
                    "data.autoconfigure.*",
                    "data.redis.autoconfigure.(DataRedisReactive|DataRedisRepositories|health|observation).*",
                    "health.autoconfigure.application.*",
                    "(jdbc|netty).*",
                    "micrometer.metrics.autoconfigure.(jvm|logging|ssl|startup|system|task).*",
                    "micrometer.metrics.autoconfigure.export.(?!prometheus|simple).*",
                    "micrometer.observation.autoconfigure.ScheduledTasks.*",
                    "servlet.autoconfigure.actuate.web.(exchanges|mappings).*",
                    "tomcat.autoconfigure.metrics.*",
                    "webmvc.autoconfigure.actuate.web.mappings.*",
                    ".*[Rr]eactive.*")
            .reduce((one, other) -> one + "|" + other)
            .map(names -> Pattern.compile("org\\.springframework\\.boot\\.(" + names + ")"))
            .orElseThrow();

    @Override
    public boolean[] match(@Nullable String[] classes, AutoConfigurationMetadata metadata) {
        boolean[] needed = new boolean[classes.length];
        for (int i = 0; i < classes.length; i++) {
            String name = classes[i];
            needed[i] = name != null && !UNNEEDED.matcher(name).matches();
        }
        return needed;
    }
}
