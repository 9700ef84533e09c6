package io.ratelimit.kotlin

import io.ratelimit.ManualTimeSource
import io.ratelimit.Throttlers
import io.ratelimit.annotation.RateLimitExceededException
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.net.http.HttpResponse.BodyHandlers
import java.nio.file.Files
import java.nio.file.Path
import java.time.Duration
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Tag
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import org.springframework.beans.factory.annotation.Autowired
import org.springframework.boot.autoconfigure.SpringBootApplication
import org.springframework.boot.test.context.SpringBootTest
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment
import org.springframework.boot.test.web.server.LocalServerPort
import org.springframework.context.annotation.Bean

/** Calls of suspend functions, on a real Tomcat and without one. Each call is charged once, and a denied one isn't made. */
@SpringBootTest(
    webEnvironment = WebEnvironment.RANDOM_PORT,
    properties = [
        "ratelimit.policies.find.rate=10/1h",
        "ratelimit.policies.find.applies-to=annotated",
        "ratelimit.policies.item.rate=2/1h",
        "ratelimit.policies.item.applies-to=annotated",
        "ratelimit.policies.search.rate=2/1h",
        "ratelimit.policies.search.cost=2",
        "ratelimit.policies.search.applies-to=annotated",
        "ratelimit.policies.stream.rate=2/1h",
        "ratelimit.policies.stream.applies-to=annotated",
        "ratelimit.policies.handler.rate=2/1h",
        "ratelimit.policies.handler.applies-to=annotated",
        "ratelimit.policies.shop.rate=10/1h",
        "ratelimit.policies.shop.key=user",
        "ratelimit.policies.shop.applies-to=annotated",
        "ratelimit.policies.caller.rate=10/1h",
        "ratelimit.policies.caller.key=ip",
        "ratelimit.policies.caller.applies-to=annotated",
        "ratelimit.policies.limited.rate=3/1h",
        "ratelimit.policies.limited.applies-to=annotated",
        "ratelimit.policies.tokens.rate=100/1h",
        "ratelimit.policies.tokens.applies-to=annotated",
        "ratelimit.policies.requests.rate=2/1h",
        "ratelimit.policies.requests.paths=/filtered",
        "ratelimit.policies.requests.refund-on=5xx"])
@Tag("slow")
internal class CoroutinesTests(
    @Autowired val time: ManualTimeSource,
    @Autowired val throttlers: Throttlers,
    @Autowired val handlers: Handlers,
    @Autowired val catalog: Catalog,
    @Autowired val shop: Shop,
    @Autowired val limited: LimitedType,
    @Autowired val work: Work,
    @LocalServerPort val port: Int) {

    private val client = HttpClient.newHttpClient()

    @SpringBootApplication
    class Application {

        @Bean
        fun time() = ManualTimeSource()
    }

    @BeforeEach
    fun fillTheBuckets() {
        time.advance(Duration.ofDays(1))
    }

    @ParameterizedTest
    @ValueSource(strings = ["/quick", "/filtered"])
    fun aHandlerThatSuspendsIsLimited(path: String) {
        val made = handlers.calls.get()

        assertThat(listOf(get(path), get(path)).map { it.statusCode() }).containsOnly(200)
        assertRejected(get(path))
        assertThat(handlers.calls.get() - made).isEqualTo(if (path == "/quick") 2 else 0)
    }

    @Test
    fun aHandlerThatSuspendsIsChargedOnceForEachCall() {
        assertThat(get("/slow").statusCode()).isEqualTo(200)
        assertThat(available("handler")).isEqualTo(1)
        assertThat(get("/slow").statusCode()).isEqualTo(200)
        assertRejected(get("/slow"))
    }

    @Test
    fun aCallThatIsDeniedOnAnotherThreadIsAnsweredWith429() {
        repeat(10) { assertThat(get("/later").statusCode()).isEqualTo(200) }

        assertRejected(get("/later"))
    }

    @Test
    fun aFactOfTheRequestIsAKeyUntilTheCoroutineChangesItsThread() {
        assertThat(get("/caller").statusCode()).isEqualTo(200)

        assertThat(available("caller", "127.0.0.1")).describedAs("charged on the thread of the request").isEqualTo(9)
    }

    @Test
    fun anArgumentIsAKeyByItsName() {
        repeat(2) { assertThat(get("/items/5").body()).isEqualTo("item 5") }

        assertRejected(get("/items/5"))
        assertThat(get("/items/6").statusCode()).isEqualTo(200)
        assertThat(available("find")).isEqualTo(7)
    }

    @Test
    fun aDeniedCallOfAServiceThrows() = runBlocking<Unit> {
        repeat(10) { assertThat(catalog.find("5")).isEqualTo("item 5") }

        assertDenied { catalog.find("5") }
    }

    @Test
    fun aFunctionOfAnInterfaceIsLimited() = runBlocking<Unit> {
        assertThat(shop.order("acme", 7)).isEqualTo("7 for acme")
        assertThat(available("shop", "acme")).isEqualTo(3)

        assertDenied { shop.order("acme", 7) }
        assertThat(shop.status()).isEqualTo("open")
        assertThat(available("shop", "default")).isEqualTo(9)
    }

    @Test
    fun aFlowCostsOneTokenWhateverItEmits() = runBlocking<Unit> {
        val flow = catalog.all()
        assertThat(available("stream")).isEqualTo(1)
        repeat(2) { assertThat(flow.toList()).containsExactly("item a", "item b") }
        assertThat(available("stream")).isEqualTo(1)

        assertThat(get("/stream").body()).contains("item a", "item b")
        assertRejected(get("/stream"))
    }

    @Test
    fun aLimitedTypeLimitsItsFunctionsOfAllKinds() = runBlocking<Unit> {
        assertThat(limited.first()).isEqualTo(1)
        assertThat(limited.second()).isEqualTo(2)
        assertThat(limited.stream().toList()).containsExactly(3)
        assertThat(available("limited")).isEqualTo(0)

        assertDenied { limited.first() }
        assertDenied { limited.stream() }
        limited.free()
    }

    @Test
    fun theResultOfACoroutineSettlesItsCall() = runBlocking<Unit> {
        assertThat(work.run(8)).isEqualTo(8)
        assertThat(available("tokens")).isEqualTo(92)

        assertThat(runCatching { work.run(11) }.exceptionOrNull()).hasMessage("too much")
        assertThat(available("tokens")).describedAs("the estimate stands").isEqualTo(42)
        assertThat(work.run(0)).describedAs("free by its condition").isEqualTo(0)
        assertThat(available("tokens")).isEqualTo(42)
        assertDenied { work.run(1) }
    }

    @Test
    fun aFallbackThatSuspendsAnswersForADeniedCall() = runBlocking<Unit> {
        assertThat(catalog.search("tea")).containsExactly("item tea")
        assertThat(available("search")).isEqualTo(1)
        assertThat(catalog.search("tea")).containsExactly("tea: later, in PT30M")

        repeat(2) { assertThat(work.keyed("a")).isNull() }
        assertThat(work.keyed("a")).isEqualTo("later for a")
        assertThat(work.keyed("b")).isNull()

        repeat(2) { assertThat(work.rows().toList()).containsExactly(1) }
        assertThat(work.rows().toList()).containsExactly(0)
    }

    @Test
    fun thePageHasTheExamples() {
        val code = Files.readString(Path.of("src/test/kotlin/io/ratelimit/kotlin/Catalog.kt"))
        val page = Files.readString(Path.of("../../docs/stacks.md"))
        val examples = code.substringAfter("docs/stacks.md\n").substringBefore("// the end of the examples")

        assertThat(page).contains("```kotlin\n$examples```\n")
    }

    private fun available(policy: String, vararg key: String) = throttlers.snapshot(policy, *key).available()

    private suspend fun assertDenied(call: suspend () -> Any?) {
        assertThat(runCatching { call() }.exceptionOrNull()).isInstanceOf(RateLimitExceededException::class.java)
    }

    private fun assertRejected(response: HttpResponse<String>) {
        assertThat(response.statusCode()).isEqualTo(429)
        assertThat(response.headers().firstValue("Content-Type")).hasValue("application/problem+json")
        assertThat(response.headers().firstValue("Retry-After")).isPresent()
    }

    private fun get(path: String): HttpResponse<String> =
        client.send(HttpRequest.newBuilder(URI.create("http://localhost:$port$path")).build(), BodyHandlers.ofString())
}
