package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatException;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.key.KeyPart.Availability;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.expression.spel.standard.SpelCompiler;
import org.springframework.expression.spel.standard.SpelExpression;

class RequestExpressionTests {

    private static final String FACT_NAMES = "method, path, endpoint, ip, user, roles, contentLength,"
            + " header('NAME'), query('NAME'), cookie('NAME'), pathVariable('NAME'), claim('NAME'), bean('NAME') and number(TEXT)";

    private static final FixedFacts FACTS = new FixedFacts(
            "POST",
            "GET /items/{id}",
            "203.0.113.7",
            "alice",
            Map.of(
                    "path", "/items/5",
                    "roles", "ADMIN,ROLE_ADMIN",
                    "contentLength", "2000",
                    "X-Plan", "gold",
                    "query page", "7",
                    "cookie device", "d1",
                    "claim tenant", "t1",
                    "variable id", "5"));

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "method                                      | POST",
                "path                                        | /items/5",
                "endpoint                                    | GET /items/{id}",
                "ip                                          | 203.0.113.7",
                "user                                        | alice",
                "contentLength                               | 2000",
                "header('X-Plan')                            | gold",
                "query('page')                               | 7",
                "cookie('device')                            | d1",
                "pathVariable('id')                          | 5",
                "claim('tenant')                             | t1",
                "claim('plan') == 'trial'                    | false",
                "roles.contains('ADMIN')                     | true",
                "roles.contains('USER')                      | false",
                "roles.size()                                | 2",
                "user + '-' + method                         | alice-POST",
                "header('X-Other') ?: ip                     | 203.0.113.7",
                "header('X-Other')?.length() == null         | true",
                "header('X-Plan').equalsIgnoreCase('GOLD')   | true",
                "path.startsWith('/items/') and !path.isEmpty() | true",
                "{'PUT', 'POST'}.contains(method)            | true",
                "user matches 'a.*' ? 'a' : 'other'          | a",
                "contentLength between {1, 10}               | false",
                "contentLength / 1024.0 > 1 && method != 'GET' or false | true",
                "(contentLength - 1) % 10 * 2                | 18",
                "header('X-Plan').substring(0, 2)            | go",
            })
    void readsTheFactsOfARequest(String text, String value) {
        RequestExpression expression = RequestExpression.of(text);
        for (int i = 0; i < 250; i++) {
            assertThat(expression.text(FACTS)).as("interpreted, then compiled").isEqualTo(value);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "T(java.lang.Runtime).getRuntime()",
                "T(java.lang.Runtime)",
                "new java.io.File('/')",
                "new String('a')",
                "@bean",
                "&@bean",
                "#root",
                "#this",
                "#root.class",
                "#name",
                "#name('a')",
                "user = 'a'",
                "user == (method = 'a')",
                "user ?: (method = 'a')",
                "contentLength++",
                "--contentLength",
                "2 ^ 9",
                "roles[0]",
                "user['bytes']",
                "roles.?[true]",
                "roles.^[true]",
                "roles.![toString()]",
                "{a: user}",
                "user instanceof T(String)",
            })
    void nothingElseCanBeUsed(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of(text))
                .withMessageContainingAll("'", "can't be ");
    }

    @Test
    void theMessageNamesWhatCantBeUsed() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of("user == null or T(System).exit(0) == null"))
                .withMessage("'T(System)' can't be used in an expression of a policy, which can use only the facts of a"
                        + " request: " + FACT_NAMES);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "''.class",
                "user.class",
                "user.bytes",
                "user.getClass()",
                "user?.getClass().forName('a')",
                "user.toString()",
                "header('a').repeat(1000000)",
                "header('a').replaceAll('(a+)+', 'b')",
                "header('a').matches(query('a'))",
                "roles.clear()",
                "roles.toArray()",
                "'a'.length().class",
                "('a' + user).intern()",
                "header(user.getClass()).length()",
                "(user.isEmpty() ? user : user.toCharArray()).length()",
            })
    void fewMethodsCanBeCalledOnAValue(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of(text))
                .withMessageEndingWith(
                        "can't be called on a value; the methods are contains(), endsWith(), equalsIgnoreCase(),"
                                + " indexOf(), isBlank(), isEmpty(), length(), size(), startsWith(), strip(), substring()");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "usr                      | usr",
                "session                  | session",
                "class                    | class",
                "request.remoteAddr       | request",
                "getClass()               | getClass()",
                "hashCode()               | hashCode()",
                "user()                   | user()",
                "session()                | session()",
                "parameter(\"a\")       | parameter",
                "header                   | header",
                "lots                     | lots",
                "header(usr)              | usr",
            })
    void anUnknownFactIsRejectedWithTheKnownOnes(String text, String name) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of(text))
                .withMessage("A request has no '" + name + "'; its facts are " + FACT_NAMES);
    }

    @ParameterizedTest
    @ValueSource(strings = {"header()", "header('a', 'b')", "query()"})
    void aFunctionTakesOneArgument(String text) {
        String name = text.substring(0, text.indexOf('('));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of(text))
                .withMessage("'" + name + "' takes one argument, as in " + name + "('a')");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "user ==", "user + ", "user user", "header('a", "'", "user:", "#{user}"})
    void anUnreadableExpressionIsRejected(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of(text))
                .withMessageStartingWith("'" + text + "' can't be read as an expression: ");
    }

    @Test
    void aPatternIsAConstantAndIsCompiledAtTheStart() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of("path matches header('a')"))
                .withMessageContaining("must have a pattern in quotes");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of("path matches '('"))
                .withMessageContaining("has an invalid pattern: Unclosed group");
    }

    @ParameterizedTest
    @CsvSource({
        "user, NEEDS_USER",
        "roles.contains('a'), NEEDS_USER",
        "method == 'GET' ? ip : user, NEEDS_USER",
        "header(user), NEEDS_USER",
        "claim('tenant'), NEEDS_USER",
        "header('user') + method + path + endpoint + ip, IMMEDIATE",
        "'''user''', IMMEDIATE"
    })
    void isAvailableWhenAllItsFactsAre(String text, Availability availability) {
        assertThat(RequestExpression.of(text).availability()).isEqualTo(availability);
    }

    @Test
    void isCompiledAlsoForFactsOfAPrivateType() throws Exception {
        for (String text : List.of("user", "header('X-Plan')", "roles.contains('ADMIN')")) {
            RequestExpression expression = RequestExpression.of(text);
            expression.value(FACTS);
            assertThat(SpelCompiler.compile((SpelExpression) parsed(expression)))
                    .as(text)
                    .isTrue();
        }
    }

    @Test
    void isCompiledAfterSomeUse() throws Exception {
        RequestExpression expression = RequestExpression.of("user");
        for (int i = 0; i < 250; i++) {
            expression.value(FACTS);
        }
        Field compiled = SpelExpression.class.getDeclaredField("compiledAst");
        compiled.setAccessible(true);
        assertThat(compiled.get(parsed(expression))).isNotNull();
    }

    private static Object parsed(RequestExpression expression) throws Exception {
        Field parsed = RequestExpression.class.getDeclaredField("parsed");
        parsed.setAccessible(true);
        return parsed.get(expression);
    }

    /** SpEL interprets an expression again if its compiled code fails. */
    @Test
    void aCompiledExpressionHasTheSameValues() {
        RequestExpression expression = RequestExpression.of("header('a') == null ? 1 : header('a').length() > 1");
        Map<String, String> headers = new HashMap<>();
        for (int i = 0; i < 2000; i++) {
            String value = i % 300 == 0 ? null : "x".repeat(i % 3);
            headers.put("a", value);
            assertThat(expression.value(FACTS.withHeaders(headers)))
                    .as("call %d", i)
                    .isEqualTo(value == null ? (Object) 1 : value.length() > 1);
        }
    }

    @Test
    void concurrentThreadsGetTheirOwnValues() throws Exception {
        RequestExpression expression = RequestExpression.of("user + header('n')");
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try {
            List<Callable<Boolean>> calls = IntStream.range(0, 4)
                    .<Callable<Boolean>>mapToObj(
                            thread -> () -> IntStream.range(0, 1000).allMatch(i -> ("u" + thread + i)
                                    .equals(expression.text(FACTS.withUser("u" + thread)
                                            .withHeaders(Map.of("n", Integer.toString(i)))))))
                    .collect(Collectors.toList());
            for (Future<Boolean> answers : threads.invokeAll(calls)) {
                assertThat(answers.get()).isTrue();
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void aCollectionIsNoText() {
        assertThat(RequestExpression.of("header('X-Other')").text(FACTS)).isNull();
        assertThatException().isThrownBy(() -> RequestExpression.of("roles").text(FACTS));
        assertThatException()
                .isThrownBy(() -> RequestExpression.of("{user, ip}").text(FACTS));
    }

    /** Integer arithmetic of Java would have other results, some of them below one. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "header('X').length() * 1000000                          | 3000000000",
                "header('X').length() * 1000000 * 1000000 * 1000000      | 3000000000000000000000",
                "2147483647 + header('X').length()                       | 2147486647",
                "-2147483647 - header('X').length()                      | -2147486647",
                "header('X').length() * 1000000 > 5 ? 10 : 1             | 10",
                "header('X').length() * 1000000 > 5 and 1 + header('X').length() >= 3001 | true",
                "header('X').length() * 1000000 < 5 or header('X').length() - 1 == 3000  | false",
                "header('X').length() / 7 % 100                          | 28",
                "header('X').length() / 8.0                              | 375.0",
                "number('0x10') * 2                                      | 32.0",
            })
    void numbersDoNotOverflow(String text, String value) {
        FixedFacts request = FACTS.withHeaders(Map.of("X", "x".repeat(3_000)));
        assertThat(RequestExpression.of(text).text(request)).isEqualTo(value);
    }

    @Test
    void aSumWithAMissingOperandFailsAlsoWhenCompiled() {
        RequestExpression sum = RequestExpression.of("header('A') + header('B')");
        for (int i = 0; i < 1_000; i++) {
            sum.text(FACTS.withHeaders(Map.of("A", "a", "B", "b")));
        }
        assertThatException().isThrownBy(() -> sum.text(FACTS.withHeaders(Map.of())));
        assertThatException().isThrownBy(() -> sum.text(FACTS.withHeaders(Map.of("A", "a"))));
        assertThat(sum.text(FACTS.withHeaders(Map.of("A", "a", "B", "b")))).isEqualTo("ab");
    }

    @Test
    void aPatternThatOverflowsTheStackFails() {
        RequestExpression deep = RequestExpression.of("header('X') matches '(a|b)*'");
        assertThatException()
                .isThrownBy(() -> deep.value(FACTS.withHeaders(Map.of("X", "a".repeat(100_000)))))
                .withMessage("too deep");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "query('rows') > 100          | query('rows')",
                "100 <= header('rows')        | header('rows')",
                "query('rows') == 5           | query('rows')",
                "query('rows') / 2            | query('rows')",
                "path * 2                     | path",
                "1 - user                     | user",
                "roles > 1                    | roles",
            })
    void aTextWhereANumberIsNeededIsRejected(String text, String part) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestExpression.of(text))
                .withMessageStartingWith("'" + part + "' is text, and '")
                .withMessageEndingWith("needs a number: write number(" + part + ")");
    }

    @Test
    void theNumberFunctionReadsAText() {
        RequestExpression rows = RequestExpression.of("number(query('rows')) > 100");
        assertThat(rows.value(FACTS.withHeaders(Map.of("query rows", "101")))).isEqualTo(true);
        assertThat(rows.value(FACTS.withHeaders(Map.of("query rows", "99")))).isEqualTo(false);
        assertThat(rows.value(FACTS.withHeaders(Map.of("query rows", "1e999999999"))))
                .isEqualTo(true);
        assertThat(rows.value(FACTS.withHeaders(Map.of("query rows", "many")))).isEqualTo(false);
    }

    @ParameterizedTest
    @CsvSource({
        "header('A'), true",
        "query('a') + cookie('b'), true",
        "header('A') + endpoint + path, true",
        "path, true",
        "path == '/a' ? 'a' : 'b', false",
        "endpoint, false",
        "ip, false",
        "user + header('A'), false"
    })
    void isChosenByTheClientIfAllItsFactsAre(String text, boolean chosen) {
        assertThat(KeyPart.of("expression:" + text).chosenByClient()).isEqualTo(chosen);
    }

    @Test
    void readsBeansByTheirNames() {
        Map<String, KeyResolver> beans = Map.of("plan", request -> "plan of " + request.user(), "rows", request -> "5");
        RequestExpression expression = RequestExpression.of("number(bean('rows')) > 4 ? bean('plan') : ''")
                .withBeans(beans::get);
        for (int i = 0; i < 250; i++) {
            assertThat(expression.text(FACTS)).isEqualTo("plan of alice");
        }
        assertThat(expression.availability()).isEqualTo(Availability.MAY_CHANGE);
        assertThat(expression.chosenByClient()).isFalse();
        assertThat(RequestExpression.of("bean('plan') + user").availability()).isEqualTo(Availability.NEEDS_USER);
    }

    @Test
    void withoutItsBeanTheEvaluationFails() {
        assertThatException()
                .isThrownBy(() -> RequestExpression.of("bean('plan')").value(FACTS));
        RequestExpression other = RequestExpression.of("user");
        assertThat(other.withBeans(name -> request -> name)).isSameAs(other);
    }
}
