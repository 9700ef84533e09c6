import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Writes {@code PolicyDescription}: the properties of a policy as getters, with the texts of the record's components. The
 * build runs it before it compiles. The getters return only types that the editors of Spring Tools know.
 */
class PolicyDescriptions {

    private static final Pattern TEXT = Pattern.compile("@param (\\w+)\\s(.*?)(?=@param|\\*/)", Pattern.DOTALL);

    private final String source;

    private PolicyDescriptions(String source) {
        this.source = source;
    }

    /** @param arguments the source of {@code RateLimitProperties}, and the folder of the sources that the build makes */
    public static void main(String... arguments) throws IOException {
        Path file = Path.of(arguments[1], "io/ratelimit/policy/PolicyDescription.java");
        Files.createDirectories(file.getParent());
        Files.writeString(file, new PolicyDescriptions(Files.readString(Path.of(arguments[0]))).description());
    }

    private String description() {
        String imports = source.lines().filter(line -> line.startsWith("import")).collect(Collectors.joining("\n"));
        return "package io.ratelimit.policy;\n\n" + imports + "\nimport io.ratelimit.policy.RateLimitProperties.*;\n\n"
                + "/** The properties of a policy, for editors that describe getters. Made by the build from the record. */\n"
                + "abstract class PolicyDescription {\n\n    private PolicyDescription() {}\n" + getters("Policy")
                + nested("Tier") + nested("GuaranteedShare") + nested("NamedShare")
                + nested("OverrideEntry") + "}\n";
    }

    private String nested(String type) {
        return "\n    abstract static class " + type + " {\n\n    private " + type + "() {}\n" + getters(type) + "    }\n";
    }

    private String getters(String type) {
        String[] parts = source.split("public record " + type + "\\(", 2);
        String annotated = parts[1].substring(0, parts[1].indexOf(") {"));
        String components = annotated.replaceAll("@\\w+(\\(.*?\\))?", "");
        StringBuilder getters = new StringBuilder();
        Matcher text = TEXT.matcher(parts[0].substring(parts[0].lastIndexOf("/**\n")));
        while (text.find()) {
            Matcher component = Pattern.compile("(\\w+(?:<[\\w<>, ]+>)?) " + text.group(1) + "\\b").matcher(components);
            if (!component.find()) {
                throw new IllegalStateException("no component of " + type + " has the name " + text.group(1));
            }
            Matcher written = Pattern.compile("@Name\\(\"(\\w+)\"\\)[^,]*\\b" + text.group(1) + "\\b").matcher(annotated);
            String property = written.find() ? written.group(1) : text.group(1);
            String name = property.substring(0, 1).toUpperCase(Locale.ROOT) + property.substring(1);
            getters.append("\n    /** ").append(text.group(2).replaceAll("\\R\\s+\\*", " ").replaceAll("\\s+", " ").strip());
            getters.append(" */\n    public abstract ").append(shown(component.group(1))).append(" get" + name + "();\n");
        }
        return getters.toString();
    }

    private static String shown(String bound) {
        return bound.replaceAll("\\b(Rate|ZoneId|Request\\w+|Settle|KeyPart|RetryJitter|Text|Percent)\\b", "String")
                .replaceAll("\\b(MaxWait|RejectionDelay|Lease)\\b", "Duration")
                .replace("boolean", "Boolean")
                .replaceAll("\\bint\\b", "Integer");
    }
}
