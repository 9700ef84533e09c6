package io.ratelimit.web.servlet;

import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import java.util.concurrent.Semaphore;

/** Releases a permit when the container completes an asynchronous request, which it may report twice. */
record OnComplete(Semaphore completed) implements AsyncListener {

    @Override
    public void onComplete(AsyncEvent event) {
        completed.release();
    }

    @Override
    public void onTimeout(AsyncEvent event) {}

    @Override
    public void onError(AsyncEvent event) {}

    @Override
    public void onStartAsync(AsyncEvent event) {}
}
