package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Throttlers;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** Refuses a request: gives back what it was charged, sets the headers that CORS asks for, has the answer written. */
public final class Rejection {

    private final Throttlers throttlers;
    private final RejectionCors cors;
    private final RejectionHandler handler;

    public Rejection(Throttlers throttlers, RejectionCors cors, RejectionHandler handler) {
        this.throttlers = throttlers;
        this.cors = cors;
        this.handler = handler;
    }

    void write(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException {
        RequestBill.of(request).giveBack(throttlers);
        cors.apply(request, response);
        handler.reject(request, response, decision);
    }
}
