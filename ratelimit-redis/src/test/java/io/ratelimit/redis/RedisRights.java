package io.ratelimit.redis;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/** The documented rights of a Redis user, and a user with rights. */
final class RedisRights {

    static final List<String> OF_SCRIPTS = documented().get(0);
    static final List<String> OF_TRANSACTIONS = documented().get(1);
    static final List<String> OF_SHARES = documented().get(2);
    static final List<String> TO_CONNECT = documented().get(3);
    static final List<String> ON_CLUSTERS = documented().get(4);
    static final List<String> OF_CHANGES = documented().get(5);

    static final String USER = "shop";
    static final String PASSWORD = "s3cret";

    private RedisRights() {}

    private static List<List<String>> documented() {
        try {
            String page = Files.readString(Path.of("../docs/redis-internals.md"));
            String section = page.substring(page.indexOf("## Access control lists"), page.lastIndexOf("\nNext: "));
            return Pattern.compile("`(\\+[^`]+)`")
                    .matcher(section)
                    .results()
                    .map(found -> List.of(found.group(1).split("\\s+")))
                    .toList();
        } catch (IOException missing) {
            throw new UncheckedIOException(missing);
        }
    }

    /** Gives the user exactly these rights. */
    static void allow(TestRedis redis, List<String> rights) {
        CommandArgs<byte[], byte[]> user =
                new CommandArgs<>(ByteArrayCodec.INSTANCE).add("SETUSER").add(USER);
        List.of("reset", "on", ">" + PASSWORD, "~ratelimit:shop:*").forEach(user::add);
        rights.forEach(user::add);
        redis.connection().sync().dispatch(CommandType.ACL, new StatusOutput<>(ByteArrayCodec.INSTANCE), user);
    }
}
