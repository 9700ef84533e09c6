package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.HttpStatus;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.ActiveProfiles;
import org.springframework.test.web.servlet.client.RestTestClient;

/** The sample with its limits in its database. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT, properties = "ratelimit.jdbc.timeout=5s")
@ActiveProfiles("jdbc")
@DirtiesContext
class DatabaseProfileTests {

    @Autowired
    private Backend backend;

    @Autowired
    private JdbcTemplate database;

    @LocalServerPort
    private int port;

    @Test
    void theSeventhQuickReportIsRejectedByTheDatabase() {
        RestTestClient alice = RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .defaultHeaders(headers -> headers.setBasicAuth("alice", "alice"))
                .build();
        for (int i = 0; i < 6; i++) {
            alice.get().uri("/api/report").exchange().expectStatus().isOk();
        }
        alice.get().uri("/api/report").exchange().expectStatus().isEqualTo(HttpStatus.TOO_MANY_REQUESTS);
        assertThat(backend.state().condition()).isEqualTo(Condition.UP);
        assertThat(database.queryForObject("SELECT count(*) FROM ratelimit_bucket", Integer.class))
                .isPositive();
    }
}
