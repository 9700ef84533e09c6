package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.mock.web.MockHttpServletRequest;

class ServletRequestFactsTests {

    private static ServletRequestFacts multipart(String method) {
        MockHttpServletRequest request = new MockHttpServletRequest(method, "/upload");
        request.setContentType("multipart/form-data; boundary=x");
        request.setQueryString("tenant=a");
        return new ServletRequestFacts(
                request,
                new Endpoints("", "", List.of()),
                new ClientIpResolver(new ClientIp(List.of(), "x-forwarded-for", 64)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"POST", "PUT", "PATCH"})
    void theQueryOfAnUploadIsRead(String method) {
        assertThat(multipart(method).query("tenant")).isEqualTo("a");
    }

    /** A controller would get the part of that name, if there is one. */
    @ParameterizedTest
    @ValueSource(strings = {"GET", "DELETE", "OPTIONS"})
    void theQueryOfAnyOtherMultipartRequestIsAFailure(String method) {
        assertThatIllegalStateException()
                .isThrownBy(() -> multipart(method).query("tenant"))
                .withMessage("the parts of a multipart body precede the query string");
    }
}
