package io.ratelimit.benchmarks.bounds;

import com.alibaba.csp.sentinel.Entry;
import com.alibaba.csp.sentinel.EntryType;
import com.alibaba.csp.sentinel.SphU;
import com.alibaba.csp.sentinel.slots.block.BlockException;
import com.alibaba.csp.sentinel.slots.block.RuleConstant;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRuleManager;
import com.alibaba.csp.sentinel.slots.block.flow.param.ParamFlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.param.ParamFlowRuleManager;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Sentinel, with the rule that its documentation begins with: so many calls a second, others are rejected. Its state is static;
 * each instance has a resource of its own, as each process would.
 */
final class SentinelRules {

    private static final AtomicInteger RESOURCES = new AtomicInteger();
    private static final Map<String, FlowRule> RULES = new ConcurrentHashMap<>();

    private SentinelRules() {}

    static Instance start(Limit limit) {
        String resource = "resource-" + RESOURCES.incrementAndGet();
        load(resource, limit);
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return enters(resource);
            }

            @Override
            public void change(Limit next) {
                load(resource, next);
            }
        };
    }

    private static void load(String resource, Limit limit) {
        FlowRule rule = new FlowRule(resource);
        rule.setGrade(RuleConstant.FLOW_GRADE_QPS);
        rule.setCount(limit.perSecond());
        RULES.put(resource, rule);
        FlowRuleManager.loadRules(List.copyOf(RULES.values()));
    }

    /** Returns a rule for each value of a parameter. */
    static Instance startWithKeys(Limit limit) {
        String resource = "resource-" + RESOURCES.incrementAndGet();
        ParamFlowRule rule = new ParamFlowRule(resource).setParamIdx(0).setCount(limit.tokens());
        rule.setDurationInSec(limit.period().toSeconds());
        ParamFlowRuleManager.loadRules(List.of(rule));
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return enters(resource, key);
            }

            @Override
            public void change(Limit next) {
                throw new UnsupportedOperationException();
            }
        };
    }

    private static boolean enters(String resource, Object... parameters) {
        try {
            Entry entry = SphU.entry(resource, EntryType.IN, 1, parameters);
            entry.exit(1, parameters);
            return true;
        } catch (BlockException rejected) {
            return false;
        }
    }
}
