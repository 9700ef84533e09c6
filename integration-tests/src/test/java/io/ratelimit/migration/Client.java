package io.ratelimit.migration;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** Sends requests to a port of the loopback address. */
public record Client(HttpClient http, int port) {

    public static Client of(int port) {
        return new Client(
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build(), port);
    }

    /** @param headers names and values in turn */
    public HttpResponse<String> get(String path, String... headers) {
        try {
            return http.send(request(path, headers), BodyHandlers.ofString());
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }

    public CompletableFuture<HttpResponse<String>> send(String path) {
        return http.sendAsync(request(path), BodyHandlers.ofString());
    }

    /** Returns the statuses of requests, one after the other. */
    public List<Integer> statuses(int requests, String path, String... headers) {
        return IntStream.range(0, requests)
                .mapToObj(request -> get(path, headers).statusCode())
                .toList();
    }

    private HttpRequest request(String path, String... headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:%d%s".formatted(port, path)))
                .timeout(Duration.ofMinutes(1));
        return (headers.length == 0 ? request : request.headers(headers)).build();
    }
}
