package io.ratelimit.web.servlet;

import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.http.HttpServletRequest;

/** Does what is left to do when a request has been answered: at once, or when its asynchronous work is complete. */
record Settlement(Runnable settle) implements AsyncListener {

    static void of(HttpServletRequest request, Runnable settle) {
        if (request.isAsyncStarted()) {
            request.getAsyncContext().addListener(new Settlement(settle));
        } else {
            settle.run();
        }
    }

    @Override
    public void onComplete(AsyncEvent event) {
        settle.run();
    }

    /** The container forgets its listeners when a request is dispatched and starts asynchronous work once more. */
    @Override
    public void onStartAsync(AsyncEvent event) {
        event.getAsyncContext().addListener(this);
    }

    @Override
    public void onTimeout(AsyncEvent event) {}

    @Override
    public void onError(AsyncEvent event) {}
}
