package io.ratelimit.redis;

import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.Running;
import java.util.List;

/** The script calls that several takes of the same cost from the same bucket share. */
record SameTakes(ScriptCalls script) implements CombinedTakes.Calls {

    @Override
    public Running start(Charge charge, int times) {
        return times == 1
                ? script.startTake(List.of(charge), Timing.AT_ONCE)
                : script.startTakeRepeatedly(charge, times);
    }

    @Override
    public int decided(int takes, ScriptReply reply) {
        return tookOnce(reply) ? 1 : takes;
    }

    /** Returns whether a call took the cost only once, as from a bucket with promises. It decides only its first take. */
    private static boolean tookOnce(ScriptReply reply) {
        return reply.missing(0) >= 0 && reply.leased(0) == 0;
    }

    @Override
    public Answer answer(Charge charge, int place, ScriptReply reply) {
        if (tookOnce(reply)) {
            return script.answer(charge, reply);
        }
        RedisTickScale ticks = script.ticks(charge);
        CalendarClock calendar = script.calendar(charge);
        long now = script.now(reply, 0, calendar);
        long price = ticks.price(charge.cost());
        long allowed = reply.leased(0) / price;
        return place < allowed
                ? RedisAnswers.taken(
                        charge,
                        ticks,
                        reply.lacking(0) - (allowed - place) * price,
                        reply.returned(0),
                        now,
                        reply.at(0),
                        reply.begun(0),
                        calendar)
                : RedisAnswers.denied(charge, ticks, reply.lacking(0), Timing.AT_ONCE, now, calendar);
    }
}
