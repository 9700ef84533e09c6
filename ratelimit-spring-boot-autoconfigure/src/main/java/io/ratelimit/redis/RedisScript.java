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
    private final byte[] text = read();
    private final byte[] sha = sha1(text);

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
            CommandType how, byte[] script, Consumer<CommandArgs<byte[], byte[]>> keysAndArguments) {
        CommandArgs<byte[], byte[]> arguments = new CommandArgs<>(ByteArrayCodec.INSTANCE).add(script);
        keysAndArguments.accept(arguments);
        return redis.get().dispatch(how, new LevelsOutput(), arguments).toCompletableFuture();
    }

    private static byte[] read() {
        try (InputStream in = RedisScript.class.getResourceAsStream(RESOURCE)) {
            return Objects.requireNonNull(in, RESOURCE).readAllBytes();
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private static byte[] sha1(byte[] text) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-1").digest(text);
            return HexFormat.of().formatHex(hash).getBytes(StandardCharsets.US_ASCII);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
