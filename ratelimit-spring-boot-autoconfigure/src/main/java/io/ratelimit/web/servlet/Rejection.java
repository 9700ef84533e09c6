package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleEvent;
import io.ratelimit.Throttlers;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/**
 * Refuses a request: gives back what it was charged, sets the headers that CORS asks for, has the answer written; at once
 * or, where a policy says so, later.
 */
public final class Rejection {

    private final Throttlers throttlers;
    private final RejectionCors cors;
    private final RejectionHandler handler;
    private final LateRejections late;

    public Rejection(Throttlers throttlers, RejectionCors cors, RejectionHandler handler, LateRejections late) {
        this.throttlers = throttlers;
        this.cors = cors;
        this.handler = handler;
        this.late = late;
    }

    void write(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException {
        RequestBill.of(request).giveBack(throttlers);
        ObservedPattern.note(request);
        if (late.putOff(request, decision)) {
            tellDelayed(decision);
        } else {
            answer(request, response, decision);
        }
    }

    private void tellDelayed(Decision decision) {
        for (Answer violation : decision.violations()) {
            if (late.delays(violation.policy())) {
                throttlers.listener().happened(violation.policy(), ThrottleEvent.DELAYED);
            }
        }
    }

    /** What was put off, unless the answer has begun meanwhile. */
    void writeLate(LateRejection refusal, HttpServletResponse response) throws IOException {
        if (!response.isCommitted()) {
            response.resetBuffer();
            answer(refusal.request(), response, late.decision(refusal));
        }
    }

    private void answer(HttpServletRequest request, HttpServletResponse response, Decision decision)
            throws IOException {
        cors.apply(request, response);
        handler.reject(request, response, decision);
    }

    /**
     * For a request that waited for its tokens until somebody else wanted the thread. The answer is sent before the thread
     * is marked as interrupted again: Tomcat writes nothing for one that is.
     */
    void writeInterrupted(HttpServletRequest request, HttpServletResponse response) throws IOException {
        boolean marked = Thread.interrupted();
        try {
            RequestBill.of(request).giveBack(throttlers);
            ObservedPattern.note(request);
            cors.apply(request, response);
            InterruptedAnswer.write(request, response);
            response.flushBuffer();
        } finally {
            if (marked) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
