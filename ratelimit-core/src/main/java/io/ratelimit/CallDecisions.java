package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.InFlightCalls.Taker;
import io.ratelimit.ThrottleListener.Event;
import io.ratelimit.ThrottlePolicy.Mode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Decides calls: the enforced policies together, and then each policy in shadow mode alone. Reports each decision to the
 * listeners. Thread-safe.
 */
final class CallDecisions {

    private final InFlightCalls inFlight;
    private final GuardedListeners listener;

    CallDecisions(InFlightCalls inFlight, GuardedListeners listener) {
        this.inFlight = inFlight;
        this.listener = listener;
    }

    Decision decide(List<Charge> charges, Taker taker, Taker shadowTaker) {
        List<Charge> enforced = inMode(Mode.ENFORCE, charges);
        Decision decision = decideTogether(enforced, taker);
        return decision.allowed() && enforced.size() < charges.size()
                ? decideShadows(decision, charges, shadowTaker)
                : decision;
    }

    private Decision decideShadows(Decision enforced, List<Charge> charges, Taker taker) {
        Decision decision = enforced;
        try {
            for (Charge charge : inMode(Mode.SHADOW, charges)) {
                decision = decision.withShadow(decideShadow(charge, taker));
            }
        } catch (RuntimeException | Error failed) {
            decision.release();
            throw failed;
        }
        return decision;
    }

    /** A shadow policy denies no call, also if its backend fails. */
    private Decision decideShadow(Charge charge, Taker taker) {
        try {
            return decideTogether(List.of(charge), taker);
        } catch (BackendException failed) {
            listener.eventOccurred(charge.policy(), Event.BACKEND_FAILURE);
            return Decision.of(List.of());
        }
    }

    private Decision decideTogether(List<Charge> charges, Taker taker) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        List<Answer> missing = missingKeys(charges);
        if (missing.isEmpty() && InFlightCalls.concern(charges)) {
            return inFlight.decide(charges, taker, listener);
        }
        Decision decision = missing.isEmpty() ? taker.take(charges, List.of()) : Decision.of(missing);
        listener.report(decision);
        return decision;
    }

    private static List<Answer> missingKeys(List<Charge> charges) {
        List<Answer> missing = List.of();
        for (int i = 0; i < charges.size(); i++) {
            if (!charges.get(i).hasKey()) {
                missing = missing.isEmpty() ? new ArrayList<>() : missing;
                missing.add(Answer.denied(charges.get(i), Outcome.MISSING_KEY, Duration.ZERO));
            }
        }
        return missing;
    }

    /** Returns the charges whose policies are in the mode: the list itself if all are. */
    private static List<Charge> inMode(Mode mode, List<Charge> charges) {
        for (int i = 0; i < charges.size(); i++) {
            if (charges.get(i).policy().mode() != mode) {
                return charges.stream()
                        .filter(charge -> charge.policy().mode() == mode)
                        .toList();
            }
        }
        return charges;
    }
}
