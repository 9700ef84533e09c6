package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.Running;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.lease.LeasingBucketStore.LeaseRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Takes from several buckets of a cluster, which allows one key for each script. The script is called for one bucket after
 * the other, in the order of the charges; when a bucket denies, tokens of the earlier buckets are given back if possible.
 *
 * @param script the calls of the script
 * @param call the deadline of all calls
 */
record BucketByBucket(ScriptCalls script, Deadline.Call call) {

    Decision take(List<Charge> charges, List<LeaseRequest> leases, Timing timing) {
        Answer[] answers = new Answer[charges.size()];
        for (int i = 0; i < answers.length; i++) {
            List<Answer> earlier = Arrays.asList(answers).subList(0, i);
            answers[i] = takeOrGiveBack(charges.get(i), leases, earlier, timing);
            if (!answers[i].allowed()) {
                return denied(charges, answers, i, timing);
            }
        }
        return Decision.of(List.of(answers));
    }

    /** Takes from one bucket. If that fails, gives back the tokens of the earlier buckets without waiting for the reply. */
    private Answer takeOrGiveBack(Charge charge, List<LeaseRequest> leases, List<Answer> earlier, Timing timing) {
        LeaseRequest lease = ScriptCalls.find(leases, charge);
        try {
            return script.take(List.of(charge), lease == null ? List.of() : List.of(lease), timing, call)
                    .get(0);
        } catch (BackendException failed) {
            startGivingBack(earlier);
            throw failed;
        }
    }

    /**
     * Gives back the tokens that were taken before one bucket denied, and looks at the other buckets. A server executes the
     * commands of a connection in order, so the looks see the tokens that were given back. If a command fails, the denial
     * still holds; buckets that can't be seen are left out.
     */
    private Decision denied(List<Charge> charges, Answer[] answers, int denied, Timing timing) {
        List<Running> gives = startGivingBack(Arrays.asList(answers).subList(0, denied));
        Map<Integer, Running> looks = new HashMap<>();
        for (int i = 0; i < answers.length; i++) {
            if (i != denied) {
                looks.put(i, script.startLook(List.of(charges.get(i)), timing));
            }
        }
        gives.forEach(this::resultOrNull);
        List<Answer> seen = new ArrayList<>(answers.length);
        for (int i = 0; i < answers.length; i++) {
            Running look = looks.get(i);
            ScriptReply reply = look == null ? null : resultOrNull(look);
            if (look == null) {
                seen.add(answers[i]);
            } else if (reply != null) {
                seen.add(script.seen(charges.get(i), timing, reply));
            }
        }
        return Decision.of(seen);
    }

    private @Nullable ScriptReply resultOrNull(Running running) {
        try {
            return RedisScript.result(running, call);
        } catch (BackendException failed) {
            return null;
        }
    }

    void giveBack(List<Answer> taken) {
        startGivingBack(taken).forEach(give -> RedisScript.result(give, call));
    }

    /** Starts one call for each answer, the last answer first: if two takes are from one bucket, the second is due later. */
    private List<Running> startGivingBack(List<Answer> taken) {
        List<Running> gives = new ArrayList<>(taken.size());
        for (int i = taken.size() - 1; i >= 0; i--) {
            gives.add(script.startGivingBack(List.of(taken.get(i))));
        }
        return gives;
    }
}
