package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers.UnknownPolicyException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.Set;
import org.junit.jupiter.api.Test;

class UnknownPolicyExceptionTests {

    @Test
    void allOfItSurvivesSerialization() throws IOException, ClassNotFoundException {
        UnknownPolicyException thrown = new UnknownPolicyException("serach", Set.of("search", "export"));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(thrown);
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            UnknownPolicyException read = (UnknownPolicyException) in.readObject();
            assertThat(read).hasMessage(thrown.getMessage());
            assertThat(read.policy()).isEqualTo("serach");
            assertThat(read.policies()).containsExactlyInAnyOrder("search", "export");
        }
    }
}
