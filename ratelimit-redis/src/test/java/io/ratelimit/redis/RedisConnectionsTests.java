package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.embedded.EmbeddedChannel;
import io.ratelimit.BackendException;
import io.ratelimit.ScarceThreads;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

/** The threads of connections, whose delays aren't failures of Redis. */
class RedisConnectionsTests {

    private final Application application = new Application();
    private final RedisConnections connections = new RedisConnections(application);

    /** The thread of a connection, which does only what the test has it do. */
    private final EmbeddedChannel channel = new EmbeddedChannel();

    private boolean isCongested() {
        BackendException late = new BackendException("no answer in time", new TimeoutException());
        return connections.failed(late, System.nanoTime()) instanceof CongestedException;
    }

    @Test
    void aThreadThatIsDelayedExplainsATimeout() {
        application.customizer.afterChannelInitialized(channel);
        await().until(this::isCongested);

        await("the end of the delay").until(() -> {
            channel.runScheduledPendingTasks();
            return !isCongested();
        });
    }

    /** Code of the application may block it for good, and an outage of Redis must be noticed nevertheless. */
    @Test
    void aThreadThatStandsStillBesideAnotherOneExplainsNoTimeout() {
        EmbeddedChannel other = new EmbeddedChannel();
        application.customizer.afterChannelInitialized(channel);
        application.customizer.afterChannelInitialized(other);
        await("a second").until(() -> {
            other.runScheduledPendingTasks();
            return !isCongested();
        });

        await("a delay of the other one").until(this::isCongested);
    }

    @Test
    void aThreadIsWatchedUntilItsLastConnectionIsClosed() {
        EmbeddedChannel other = new EmbeddedChannel();
        application.customizer.afterChannelInitialized(channel);
        application.customizer.afterChannelInitialized(other);
        channel.close();
        await().until(this::isCongested);
        other.close();
        assertThat(isCongested()).isFalse();
    }

    @Test
    void noThreadIsWatchedWhileTheConnectionsAreStopped() {
        application.customizer.afterChannelInitialized(channel);
        await().until(this::isCongested);
        connections.stop();
        assertThat(isCongested()).isFalse();
        assertThat(channel.runScheduledPendingTasks()).as("no task is left").isEqualTo(-1);

        application.customizer.afterChannelInitialized(channel);
        await().until(this::isCongested);
    }

    /** The threads may belong to the application. */
    @Test
    void closedConnectionsLeaveNoTask() {
        application.customizer.afterChannelInitialized(channel);
        connections.close();
        assertThat(channel.runScheduledPendingTasks()).isEqualTo(-1);
    }

    @Test
    void withoutAThreadAConnectionFailsAndItsPlaceIsFreeAgain() {
        ScarceThreads threads = new ScarceThreads(20);
        DedicatedConnections dedicated = new DedicatedConnections(() -> RedisConnections.inBackground(
                () -> {
                    throw new IllegalStateException("on a thread");
                },
                threads));
        for (int i = 0; i < 20; i++) {
            assertThatThrownBy(() -> connect(dedicated)).hasRootCauseInstanceOf(OutOfMemoryError.class);
        }
        assertThatThrownBy(() -> connect(dedicated)).hasRootCauseMessage("on a thread");
    }

    @Test
    void aConnectionThatCannotBeOpenedAtAllTakesNoPlace() {
        DedicatedConnections dedicated = new DedicatedConnections(() -> {
            throw new IllegalStateException("no memory");
        });
        for (int i = 0; i < 20; i++) {
            assertThatThrownBy(() -> connect(dedicated)).hasMessage("no memory");
        }
    }

    /** To close a connection takes stack, as the work did that overflowed it. */
    @Test
    void aConnectionThatCannotBeClosedLeavesItsPlace() {
        @SuppressWarnings("unchecked")
        StatefulRedisConnection<byte[], byte[]> connection =
                (StatefulRedisConnection<byte[], byte[]>) Proxy.newProxyInstance(
                        getClass().getClassLoader(),
                        new Class<?>[] {StatefulRedisConnection.class},
                        (proxy, method, arguments) -> {
                            throw new StackOverflowError();
                        });
        DedicatedConnections dedicated = new DedicatedConnections(() -> CompletableFuture.completedFuture(connection));
        for (int i = 0; i < 20; i++) {
            Deadline.Call call = Deadline.Call.within(Duration.ofSeconds(1), RedisFailures::of);
            assertThatThrownBy(() -> dedicated.with(call, StatefulRedisConnection::sync))
                    .isInstanceOf(StackOverflowError.class);
        }
    }

    @Test
    void theStartLeavesThePlacesOfConnectionsThatOpenLate() {
        List<CompletableFuture<StatefulRedisConnection<byte[], byte[]>>> openings = new ArrayList<>();
        DedicatedConnections dedicated = new DedicatedConnections(() -> {
            openings.add(new CompletableFuture<>());
            return openings.get(openings.size() - 1);
        });
        for (int starts = 1; starts <= 2; starts++) {
            assertThatThrownBy(() -> dedicated.openAll(Deadline.Call.within(Duration.ofMillis(1), RedisFailures::of)))
                    .isInstanceOf(BackendException.class);
            assertThat(openings).hasSize(8 * starts);
            openings.forEach(late -> late.completeExceptionally(new IllegalStateException("late")));
        }
    }

    private static void connect(DedicatedConnections dedicated) {
        dedicated.with(Deadline.Call.within(Duration.ofSeconds(10), RedisFailures::of), redis -> true);
    }

    /** An application whose connections the test makes. */
    private static final class Application implements RedisClientFactory, RedisClientFactory.Client {

        private NettyCustomizer customizer = new NettyCustomizer() {};

        @Override
        public boolean isCluster() {
            return false;
        }

        @Override
        public Client create(NettyCustomizer customizer) {
            this.customizer = customizer;
            return this;
        }

        @Override
        public AbstractRedisClient get() {
            throw new BackendException("there is no server");
        }

        @Override
        public void start() {}

        @Override
        public void stop() {}

        @Override
        public void close() {}
    }
}
