package io.ratelimit.benchmarks.bounds;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The tokens beyond the limit as bars: a row for each limiter, a column for each situation. Readable in light and dark. */
final class BoundsPicture {

    private static final int NAMES = 130;
    private static final int COLUMN = 96;
    private static final int BAR = 80;
    private static final int ROW = 34;
    private static final int TOP = 64;

    /** The tokens of the longest bar: two buckets. A longer one ends in an arrow. */
    private static final double LONGEST = 1_000;

    private BoundsPicture() {}

    static String of(BoundsTable table) {
        int width = NAMES + COLUMN * Situation.values().length;
        int height = TOP + ROW * table.rows().size() + 12;
        StringBuilder svg = new StringBuilder();
        svg.append("""
                <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %1$d %2$d" width="%1$d" height="%2$d" role="img">
                <title>Tokens that each limiter granted beyond its limit</title>
                <style>
                text { font: 13px system-ui, sans-serif; fill: #1f2328; }
                .small, .none { font-size: 11px; fill: #59636e; }
                .line { stroke: #d1d9e0; }
                .bar { fill: #cf222e; }
                @media (prefers-color-scheme: dark) {
                text { fill: #f0f6fc; }
                .small, .none { fill: #9198a1; }
                .line { stroke: #3d444d; }
                .bar { fill: #f85149; }
                }
                </style>
                """.formatted(width, height));
        text(svg, 4, 18, "", "Tokens beyond capacity + rate × D. A limit of 500 in 1 s (forgotten: in 10 s).");
        text(
                svg,
                4,
                34,
                "small",
                "No bar: within the limit. The longest bar is 1,000 tokens; longer ones end in an arrow.");
        for (Situation situation : Situation.values()) {
            text(svg, NAMES + COLUMN * situation.ordinal(), TOP - 10, "small", situation.id());
        }
        int y = TOP;
        for (Map.Entry<String, List<String>> row : table.rows().entrySet()) {
            svg.append("<path class=\"line\" d=\"M0 %d.5H%d\"/>\n".formatted(y - 4, width));
            text(svg, 4, y + 16, "", row.getKey());
            for (int i = 0; i < row.getValue().size(); i++) {
                cell(svg, NAMES + COLUMN * i, y, row.getValue().get(i));
            }
            y += ROW;
        }
        return svg.append("</svg>\n").toString();
    }

    private static void cell(StringBuilder svg, int x, int y, String cell) {
        boolean isNumber = !cell.isEmpty() && Character.isDigit(cell.charAt(0));
        text(svg, x, y + 11, isNumber && !cell.equals("0") ? "" : "none", cell);
        if (isNumber) {
            double tokens = Double.parseDouble(cell.replace(",", ""));
            double length = BAR * Math.min(1, tokens / LONGEST);
            if (length > 0) {
                String tip = tokens > LONGEST ? "l6 4l-6 4" : "v8";
                svg.append("<path class=\"bar\" d=\"M%d %dh%s%sH%dz\"/>\n"
                        .formatted(x, y + 16, String.format(Locale.ROOT, "%.1f", length), tip, x));
            }
        }
    }

    private static void text(StringBuilder svg, int x, int y, String type, String text) {
        svg.append("<text x=\"%d\" y=\"%d\"%s>%s</text>\n"
                .formatted(x, y, type.isEmpty() ? "" : " class=\"" + type + "\"", text));
    }
}
