package io.ratelimit.kotlin

import io.ratelimit.annotation.RateLimitExceededException
import io.ratelimit.annotation.RateLimitExempt
import io.ratelimit.annotation.RateLimited
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield
import org.springframework.stereotype.Service
import org.springframework.web.bind.annotation.GetMapping
import org.springframework.web.bind.annotation.PathVariable
import org.springframework.web.bind.annotation.RestController

// the examples of docs/stacks.md
@RestController
class CatalogController(private val catalog: Catalog) {

    @GetMapping("/items/{id}")
    @RateLimited("item", key = "#id")
    suspend fun item(@PathVariable id: String): String = catalog.find(id)
}

@Service
class Catalog {

    @RateLimited("find")
    suspend fun find(id: String): String {
        delay(1)
        return "item $id"
    }

    @RateLimited("search", fallback = "busy", settle = "#result.size()")
    suspend fun search(text: String): List<String> = listOf(find(text))

    private suspend fun busy(text: String, denied: RateLimitExceededException): List<String> =
        listOf("$text: later, in ${denied.retryAfter()}")

    @RateLimited("stream")
    fun all(): Flow<String> = flow {
        emit(find("a"))
        emit(find("b"))
    }
}
// the end of the examples

@RestController
class Handlers(private val catalog: Catalog, private val work: Work) {

    val calls = AtomicInteger()

    @GetMapping("/quick")
    @RateLimited("handler")
    suspend fun quick() = "made " + calls.incrementAndGet()

    @GetMapping("/slow")
    @RateLimited("handler")
    suspend fun slow(): String {
        yield()
        delay(1)
        return quick()
    }

    /** The call is denied on another thread than the request's. */
    @GetMapping("/later")
    suspend fun later() = withContext(Dispatchers.IO) { catalog.find("later") }

    @GetMapping("/caller")
    suspend fun caller() {
        work.ofCaller()
        withContext(Dispatchers.IO) { work.ofCaller() }
    }

    @GetMapping("/stream")
    fun stream(): Flow<String> = catalog.all()

    @GetMapping("/filtered")
    suspend fun filtered(): String {
        delay(1)
        return "filtered"
    }
}

interface Shop {

    @RateLimited("shop", key = "#tenant", cost = "#rows")
    suspend fun order(tenant: String, rows: Int): String

    @RateLimited("shop", key = "'default'")
    suspend fun status(): String {
        yield()
        return "open"
    }
}

@Service
class ShopOfClass : Shop {

    override suspend fun order(tenant: String, rows: Int): String {
        delay(1)
        return "$rows for $tenant"
    }
}

@Service
@RateLimited("limited")
class LimitedType {

    suspend fun first(): Int {
        yield()
        return 1
    }

    fun second() = 2

    suspend fun stream(): Flow<Int> = flow { emit(3) }

    @RateLimitExempt
    suspend fun free() {
        yield()
    }
}

@Service
class Work {

    @RateLimited("caller")
    fun ofCaller() = Unit

    @RateLimited("tokens", cost = "50", settle = "#result", condition = "#size > 0")
    suspend fun run(size: Int): Int {
        if (size > 10) {
            delay(1)
            error("too much")
        }
        return size
    }

    @RateLimited("tokens", cost = "50", key = "#p0", fallback = "later")
    suspend fun keyed(key: String): String? = null

    suspend fun later(key: String): String? {
        yield()
        return "later for $key"
    }

    @RateLimited("stream", fallback = "none")
    suspend fun rows(): Flow<Int> = flow { emit(1) }

    suspend fun none(): Flow<Int> = flow { emit(0) }
}
