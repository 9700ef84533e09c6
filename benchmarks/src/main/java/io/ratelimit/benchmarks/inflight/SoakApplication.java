package io.ratelimit.benchmarks.inflight;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Import;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** An application whose requests are handled in each way, and end in each way. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
@Import(SoakApplication.Handlers.class)
public class SoakApplication {

    /** How a request is handled. */
    enum Handling {
        DIRECT,
        CALLABLE,
        TASK,
        DEFERRED,
        FUTURE,
        STREAMING,
        EVENTS
    }

    /** How a request ends. */
    enum End {
        RESULT,
        EXCEPTION,
        HANDLED_EXCEPTION,
        SEND_ERROR,
        FORWARD,
        TIMEOUT,
        INTERRUPT,
        SLOW;

        /** Does the work of a request, on any thread. */
        String work() throws InterruptedException {
            switch (this) {
                case EXCEPTION -> throw new IllegalStateException("meant to be");
                case HANDLED_EXCEPTION -> throw new UnsupportedOperationException("meant to be");
                case TIMEOUT, SLOW -> Thread.sleep(3);
                case INTERRUPT -> {
                    Thread.currentThread().interrupt();
                    Thread.sleep(1);
                }
                default -> {
                    return "done";
                }
            }
            return "done";
        }
    }

    /** The handlers. */
    @Controller
    static class Handlers {

        private final ExecutorService others = Executors.newFixedThreadPool(8);

        @GetMapping("/soak/direct/{end}")
        @ResponseBody
        String direct(@PathVariable End end, HttpServletResponse response) throws Exception {
            if (end == End.SEND_ERROR) {
                response.sendError(409);
                return "";
            }
            return end.work();
        }

        @GetMapping("/soak/forward/{end}")
        String forward() {
            return "forward:/target";
        }

        @GetMapping("/soak/forward-later/{end}")
        Callable<String> forwardLater() {
            return () -> "forward:/target";
        }

        @GetMapping("/target")
        @ResponseBody
        String target() {
            return "done";
        }

        @GetMapping("/soak/callable/{end}")
        @ResponseBody
        Callable<String> callable(@PathVariable End end) {
            return end::work;
        }

        @GetMapping("/soak/task/{end}")
        @ResponseBody
        WebAsyncTask<String> task(@PathVariable End end) {
            return new WebAsyncTask<>(timeout(end), end::work);
        }

        @GetMapping("/soak/deferred/{end}")
        @ResponseBody
        DeferredResult<String> deferred(@PathVariable End end) {
            DeferredResult<String> result = new DeferredResult<>(timeout(end));
            others.execute(() -> {
                try {
                    result.setResult(end.work());
                } catch (Exception failed) {
                    result.setErrorResult(failed);
                }
            });
            return result;
        }

        @GetMapping("/soak/future/{end}")
        @ResponseBody
        CompletableFuture<String> future(@PathVariable End end) {
            CompletableFuture<String> result = new CompletableFuture<>();
            others.execute(() -> {
                try {
                    result.complete(end.work());
                } catch (Exception failed) {
                    result.completeExceptionally(failed);
                }
            });
            return result;
        }

        @GetMapping("/soak/streaming/{end}")
        StreamingResponseBody streaming(@PathVariable End end) {
            return (OutputStream out) -> {
                out.write('1');
                out.flush();
                try {
                    out.write(end.work().getBytes(StandardCharsets.US_ASCII));
                } catch (InterruptedException interrupted) {
                    throw new IOException(interrupted);
                }
            };
        }

        @GetMapping("/soak/events/{end}")
        SseEmitter events(@PathVariable End end) {
            SseEmitter events = new SseEmitter(timeout(end));
            others.execute(() -> {
                try {
                    events.send("begun");
                    events.send(end.work());
                    events.complete();
                } catch (Exception failed) {
                    events.completeWithError(failed);
                }
            });
            return events;
        }

        private static long timeout(End end) {
            return end == End.TIMEOUT ? 1 : 30_000;
        }

        @ExceptionHandler
        ResponseEntity<String> failed(UnsupportedOperationException failure) {
            return ResponseEntity.status(418).build();
        }
    }
}
