package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttlers;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What a request has been charged so far, over both phases: each phase once, whoever puts the filter where. Lives in an
 * attribute of the request and is used by one thread at a time.
 */
final class RequestBill {

    private static final String ATTRIBUTE = RequestBill.class.getName();

    private final List<List<Answer>> paid = new ArrayList<>(2);
    private int entered;
    private @Nullable RequestPolicies policies;
    private @Nullable ServletRequestFacts facts;
    private @Nullable Answer scarcest;
    private double smallestShare = Double.MAX_VALUE;

    static RequestBill of(HttpServletRequest request) {
        if (request.getAttribute(ATTRIBUTE) instanceof RequestBill bill) {
            return bill;
        }
        RequestBill bill = new RequestBill();
        request.setAttribute(ATTRIBUTE, bill);
        return bill;
    }

    /** Whether no filter has seen the request yet. */
    boolean isNew() {
        return entered == 0;
    }

    /** Whether the request enters the phase for the first time. */
    boolean enter(Phase phase) {
        int before = entered;
        entered |= 1 << phase.ordinal();
        return entered != before;
    }

    /** The facts of the request, as the filter sees it that asks. */
    ServletRequestFacts facts(HttpServletRequest request, Endpoints endpoints, ClientAddresses addresses) {
        facts = facts == null ? new ServletRequestFacts(request, endpoints, addresses) : facts.of(request);
        return facts;
    }

    /** The pattern of the request's endpoint; null where it reaches none, or no policy has asked for it yet. */
    @Nullable
    String pattern() {
        return facts == null ? null : facts.pattern();
    }

    /** Notes what an allowed decision took, also for policies in shadow mode. */
    void add(Decision decision, RequestPolicies policies) {
        this.policies = policies;
        paid.add(decision.taken());
        List<Answer> answers = decision.answers();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            if (!answer.policy().isGlobal() && share(answer) < smallestShare) {
                smallestShare = share(answer);
                scarcest = answer;
            }
        }
    }

    private static double share(Answer answer) {
        return (double) answer.decision().remaining() / answer.charge().spec().capacity();
    }

    /**
     * Of the policies with a key, the one with the smallest share of its bucket left. Never a global one: it would tell
     * strangers the load.
     */
    @Nullable
    Answer scarcest() {
        return scarcest;
    }

    /** Gives back what the request was charged, for it is refused; but for what a policy keeps. */
    void giveBack(Throttlers throttlers) {
        giveBack(throttlers, policy -> !policy.keepsCharges());
    }

    /** Gives back what is not to be paid for a response of this status. */
    void refund(Throttlers throttlers, int status) {
        giveBack(throttlers, policy -> policy.refunds(status));
    }

    private void giveBack(Throttlers throttlers, Predicate<RequestPolicy> which) {
        RequestPolicies known = policies;
        if (known != null) {
            List<Answer> back = new ArrayList<>();
            List<Answer> kept = new ArrayList<>();
            paid.forEach(phase ->
                    phase.forEach(answer -> (which.test(known.of(answer.charge())) ? back : kept).add(answer)));
            paid.clear();
            paid.add(kept);
            throttlers.giveBack(back);
        }
    }
}
