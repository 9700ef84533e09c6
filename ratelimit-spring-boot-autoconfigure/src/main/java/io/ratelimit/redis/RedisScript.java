package io.ratelimit.redis;

import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** The script that counts, called by its SHA; where the server doesn't know it (any more), by its text. */
final class RedisScript {

    private static final String RESOURCE = "bucket.lua";

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final String text = read();
    private final String sha = sha1(text);

    RedisScript(Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis) {
        this.redis = redis;
    }

    /** A call that runs; {@link #result} waits for it. */
    CompletableFuture<long[]> start(Consumer<CommandArgs<byte[], byte[]>> keysAndArguments) {
        return call(CommandType.EVALSHA, sha, keysAndArguments);
    }

    /** What the script returned to a call that was started. */
    long[] result(
            CompletableFuture<long[]> started,
            Consumer<CommandArgs<byte[], byte[]>> keysAndArguments,
            Deadline deadline) {
        try {
            return deadline.await(started);
        } catch (BackendException failed) {
            if (failed.getCause() instanceof RedisNoScriptException) {
                return deadline.await(call(CommandType.EVAL, text, keysAndArguments));
            }
            throw failed;
        }
    }

    private CompletableFuture<long[]> call(
            CommandType how, String script, Consumer<CommandArgs<byte[], byte[]>> keysAndArguments) {
        CommandArgs<byte[], byte[]> arguments = new CommandArgs<>(ByteArrayCodec.INSTANCE).add(script);
        keysAndArguments.accept(arguments);
        return redis.get().dispatch(how, new LongsOutput(), arguments).toCompletableFuture();
    }

    private static String read() {
        try (InputStream in = RedisScript.class.getResourceAsStream(RESOURCE)) {
            return new String(Objects.requireNonNull(in, RESOURCE).readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private static String sha1(String text) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(hash);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
