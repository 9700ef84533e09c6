package io.ratelimit.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** Whom one limit of 20 tenants serves, by each way to share it, as bars. Readable in light and dark. */
final class SharesPicture {

    static final List<String> WAYS =
            List.of("one bucket", "a bucket for each", "a threshold of 80 %", "guaranteed shares");

    private static final int NAMES = 140;
    private static final int BAR = 220;
    private static final int ROW = 26;
    private static final int TOP = 54;

    private SharesPicture() {}

    /** Writes what a file of results contains as a picture. */
    public static void main(String[] args) throws IOException {
        Files.writeString(Path.of(args[1]), of(Figures.of(Path.of(args[0]))));
    }

    static String of(Figures results) {
        StringBuilder svg = new StringBuilder("""
                <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 170" width="720" height="170" role="img">
                <title>A tenant alone, and 19 beside one that asks for 5 times the limit, by the way to share it</title>
                <style>
                text { font: 13px system-ui, sans-serif; fill: #1f2328; }
                .used { fill: #1a7f37; }
                .denied { fill: #cf222e; }
                @media (prefers-color-scheme: dark) {
                text { fill: #f0f6fc; }
                .used { fill: #3fb950; }
                .denied { fill: #f85149; }
                }
                </style>
                """);
        text(svg, NAMES, 18, "A tenant alone:");
        text(svg, NAMES, 36, "% used of the limit (more is better)");
        text(svg, NAMES + BAR + 60, 18, "One asks for 5 × the limit:");
        text(svg, NAMES + BAR + 60, 36, "% denied of 19 others (less is better)");
        for (int i = 0; i < WAYS.size(); i++) {
            String way = WAYS.get(i);
            int y = TOP + ROW * i;
            text(svg, 4, y + 15, way);
            bar(
                    svg,
                    NAMES,
                    y,
                    "used",
                    results.cell(
                            "One limit, 20 tenants", "one tenant alone, 3 × the limit, " + way, "% of the limit used"));
            bar(
                    svg,
                    NAMES + BAR + 60,
                    y,
                    "denied",
                    results.cell(
                            "One limit, 20 tenants",
                            "one asks 5 × the limit, 19 ask 80 % of a share, " + way,
                            "% denied within their share"));
        }
        return svg.append("</svg>\n").toString();
    }

    private static void bar(StringBuilder svg, int x, int y, String type, String percent) {
        double length = BAR * Double.parseDouble(percent) / 100;
        svg.append(String.format(
                Locale.ROOT,
                "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"18\"/>\n",
                type,
                x,
                y,
                length));
        text(svg, x + (int) length + 6, y + 14, percent);
    }

    private static void text(StringBuilder svg, int x, int y, String text) {
        svg.append("<text x=\"%d\" y=\"%d\">%s</text>\n".formatted(x, y, text));
    }
}
