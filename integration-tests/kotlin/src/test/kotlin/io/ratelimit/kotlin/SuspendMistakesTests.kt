package io.ratelimit.kotlin

import io.ratelimit.annotation.RateLimited
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration
import java.util.stream.Stream
import kotlin.reflect.KClass
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flowOf
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.api.Tag
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.Arguments
import org.junit.jupiter.params.provider.MethodSource
import org.springframework.boot.autoconfigure.AutoConfigurations
import org.springframework.boot.test.context.runner.ApplicationContextRunner

/** Mistakes of annotations on suspend functions stop the start, and the messages have the functions without continuations. */
@Tag("slow")
internal class SuspendMistakesTests {

    private val runner = ApplicationContextRunner().withConfiguration(
        AutoConfigurations.of(
            RateLimitAutoConfiguration::class.java,
            Class.forName("io.ratelimit.annotation.RateLimitAnnotationAutoConfiguration")))

    @ParameterizedTest
    @MethodSource("mistakes")
    fun aMistakeStopsTheStart(type: KClass<*>, message: String) {
        runner.withBean(type.java).run { context ->
            assertThat(context.startupFailure).hasMessageContaining(message)
        }
    }

    open class SettlesNothing {
        @RateLimited(rate = "1/1h", settle = "#result")
        open suspend fun run(text: String) = Unit
    }

    open class SettlesFlow {
        @RateLimited(rate = "1/1h", settle = "#result")
        open suspend fun run(text: String): Flow<Int> = flowOf(text.length)
    }

    open class PlainFallback {
        @RateLimited(rate = "1/1h", fallback = "later")
        open suspend fun run(text: String) = text

        fun later(text: String) = text
    }

    open class OtherResult {
        @RateLimited(rate = "1/1h", fallback = "later")
        open suspend fun run(text: String) = text

        suspend fun later(text: String) = text.length
    }

    open class ContinuationAsKey {
        @RateLimited(rate = "1/1h", key = "#p1")
        open suspend fun run(text: String) = text
    }

    open class FinalFunction {
        @RateLimited(rate = "1/1h")
        suspend fun run(text: String) = text
    }

    companion object {

        @JvmStatic
        fun mistakes(): Stream<Arguments> = Stream.of(
            Arguments.of(SettlesNothing::class, "SettlesNothing.run(String) has a settle, but the method returns nothing."),
            Arguments.of(SettlesFlow::class, "has a settle, but the method returns a stream of several values"),
            Arguments.of(PlainFallback::class, "has no suspend function of that name with the same parameters"),
            Arguments.of(OtherResult::class, "it returns java.lang.Integer, which isn't assignable to java.lang.String"),
            Arguments.of(ContinuationAsKey::class, "the method has no parameter '#p1', only: a0, p0, text"),
            Arguments.of(FinalFunction::class, "FinalFunction.run(String) can't be enforced: the method is final"))
    }
}
