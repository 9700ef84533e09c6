package io.ratelimit.migration;

import static org.assertj.core.api.Assertions.assertThat;

import com.alibaba.csp.sentinel.annotation.SentinelResource;
import com.alibaba.csp.sentinel.annotation.aspectj.SentinelResourceAspect;
import com.alibaba.csp.sentinel.slots.block.BlockException;
import com.alibaba.csp.sentinel.slots.block.flow.param.ParamFlowItem;
import com.alibaba.csp.sentinel.slots.block.flow.param.ParamFlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.param.ParamFlowRuleManager;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Import;

/** The example of {@code docs/migrating/sentinel.md}. Sentinel's rules are static. */
@Tag("slow")
class SentinelMigrationTests {

    private static final MigrationPage PAGE = MigrationPage.of("sentinel");
    private static final List<String> USERS = List.of("alice", "bob", "alice", "bob", "alice", "bob", "alice", "bob");
    private static final List<String> ANSWERS = List.of(
            "found for alice",
            "found for bob",
            "found for alice",
            "found for bob",
            "found for alice",
            "busy, bob",
            "busy, alice",
            "busy, bob");

    static {
        System.setProperty(
                "csp.sentinel.log.dir",
                Path.of("target/sentinel").toAbsolutePath().toString());
        System.setProperty("csp.sentinel.metric.flush.interval", "0");
    }

    @AfterEach
    void forgetTheRules() {
        ParamFlowRuleManager.loadRules(List.of());
    }

    @Test
    void aRuleForAnArgumentIsAPolicyWithAKey() {
        try (RunningApplication application =
                RunningApplication.start(BeforeApplication.class, "", "ratelimit.enabled=false")) {
            Before.load();
            assertThat(USERS.stream().map(application.bean(Before.class)::search))
                    .containsExactlyElementsOf(ANSWERS);
        }
        try (RunningApplication application =
                RunningApplication.start(AfterApplication.class, PAGE.after("A limit for each argument"))) {
            After after = application.bean(After.class);
            assertThat(USERS.stream().map(after::search)).containsExactlyElementsOf(ANSWERS);

            application.time().advance(Duration.ofHours(1));
            assertThat(USERS.stream().map(after::search)).containsExactlyElementsOf(ANSWERS);
        }
    }

    @Import({GreetingApplication.class, SentinelResourceAspect.class, Before.class})
    static class BeforeApplication {}

    @Import({GreetingApplication.class, After.class})
    static class AfterApplication {}

    static class Before {

        static void load() {
            ParamFlowRule rule = new ParamFlowRule("search")
                    .setParamIdx(0)
                    .setCount(2)
                    .setDurationInSec(3600)
                    .setParamFlowItemList(List.of(ParamFlowItem.newItem("alice", 3)));
            ParamFlowRuleManager.loadRules(List.of(rule));
        }

        @SentinelResource(value = "search", blockHandler = "busy")
        public String search(String user) {
            return "found for " + user;
        }

        public String busy(String user, BlockException blocked) {
            return "busy, " + user;
        }
    }

    static class After {

        @RateLimited(policy = "search", key = "#user", fallback = "busy")
        public String search(String user) {
            return "found for " + user;
        }

        public String busy(String user, RateLimitExceededException denied) {
            return "busy, " + user;
        }
    }
}
