package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.ratelimit.Backend.Condition;
import io.ratelimit.redis.TestRedis;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Limits on a Redis with TLS and a password, both configured by the properties of Spring Boot. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class RedisTlsTests {

    private static final String PASSWORD = "changeit";
    private static final int TLS_PORT = TestRedis.freePort();

    @TempDir
    private static Path directory;

    @AutoClose
    private static RedisProcess redis;

    @BeforeAll
    static void start() throws Exception {
        certify("server");
        certify("stranger");
        assumeTls();
        redis = RedisProcess.started(
                "tls-port " + TLS_PORT,
                "tls-cert-file " + directory.resolve("server.crt"),
                "tls-key-file " + directory.resolve("server.key"),
                "tls-ca-cert-file " + directory.resolve("server.crt"),
                "tls-auth-clients no",
                "user shop on >s3cret ~ratelimit:* +@all");
        shakeHands();
    }

    /** A server without TLS doesn't know the setting, which opens no port here. */
    private static void assumeTls() {
        try {
            RedisProcess.started("tls-port 0").close();
        } catch (UncheckedIOException withoutTls) {
            assumeThat(withoutTls)
                    .as("the redis-server of this platform was built without TLS")
                    .isNull();
        }
    }

    /** Loads the classes that a handshake needs. It may take longer than the limiter waits. */
    private static void shakeHands() {
        RedisURI uri = RedisURI.builder()
                .withHost("127.0.0.1")
                .withPort(TLS_PORT)
                .withSsl(true)
                .withTimeout(Duration.ofMinutes(1))
                .build();
        SslOptions trusted = SslOptions.builder()
                .trustManager(directory.resolve("server.crt").toFile())
                .handshakeTimeout(Duration.ofMinutes(1))
                .build();
        try (RedisClient client = RedisClient.create(uri)) {
            client.setOptions(ClientOptions.builder().sslOptions(trusted).build());
            client.connect().sync().ping();
        }
    }

    /** Returns a key and a self-signed certificate as PEM. */
    private static void certify(String name) throws IOException, InterruptedException, GeneralSecurityException {
        Path store = directory.resolve(name + ".p12");
        String command = "%s -genkeypair -alias x -keyalg RSA -dname CN=%s -ext san=dns:localhost,ip:127.0.0.1"
                + " -storetype PKCS12 -keystore %s -storepass %s -validity 2";
        String keytool =
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
        new ProcessBuilder(command.formatted(keytool, name, store, PASSWORD).split(" "))
                .start()
                .waitFor();
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD.toCharArray());
        }
        pem(
                name + ".key",
                "PRIVATE KEY",
                keys.getKey("x", PASSWORD.toCharArray()).getEncoded());
        pem(name + ".crt", "CERTIFICATE", keys.getCertificate("x").getEncoded());
    }

    private static void pem(String file, String kind, byte[] content) throws IOException {
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        text.writeBytes(("-----BEGIN " + kind + "-----\n").getBytes());
        text.writeBytes(Base64.getMimeEncoder(64, "\n".getBytes()).encode(content));
        text.writeBytes(("\n-----END " + kind + "-----\n").getBytes());
        Files.write(directory.resolve(file), text.toByteArray());
    }

    private static String yaml(String strategy, String trusted, String password) {
        return """
                spring:
                  data.redis: { ssl.bundle: redis, username: shop, password: %s }
                  ssl.bundle.pem.redis.truststore.certificate: "%s"
                ratelimit:
                  backend: redis
                  redis: { strategy: %s, timeout: 5s }
                  on-backend-failure: deny
                  policies:
                    global: { rate: 5/1d, paths: /%s }
                """.formatted(password, directory.resolve(trusted + ".crt").toUri(), strategy, strategy);
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void limitsAreSharedOverTls(String strategy) {
        String yaml = yaml(strategy, "server", "s3cret");
        redis.ask(commands -> commands.flushall());
        try (RedisApplication one = RedisApplication.start(TLS_PORT, yaml);
                RedisApplication other = RedisApplication.start(TLS_PORT, yaml)) {
            one.awaitUp();
            other.awaitUp();
            assertThat(statuses(7, strategy, one, other)).containsExactly(200, 200, 200, 200, 200, 429, 429);
            assertThat(one.condition()).isEqualTo(Condition.UP);
        }
    }

    private static List<Integer> statuses(int count, String path, RedisApplication... applications) {
        return IntStream.range(0, count)
                .map(i -> applications[i % applications.length].status("/" + path))
                .boxed()
                .toList();
    }

    @Test
    void aServerThatIsNotTrustedIsNotAsked(CapturedOutput output) {
        try (RedisApplication application = RedisApplication.start(TLS_PORT, yaml("script", "stranger", "s3cret"))) {
            assertThat(application.status("/script")).isEqualTo(503);
            assertThat(output).contains("Redis is unavailable (").contains("certification path");
        }
    }

    @Test
    void aWrongPasswordIsAMisconfiguration(CapturedOutput output) {
        try (RedisApplication application = RedisApplication.start(TLS_PORT, yaml("script", "server", "wrong"))) {
            assertThat(application.status("/script")).isEqualTo(503);
            assertThat(application.condition()).isEqualTo(Condition.MISCONFIGURED);
            assertThat(output).contains("ERROR").contains("WRONGPASS");
        }
    }
}
