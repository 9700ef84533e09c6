package io.ratelimit.actuate;

import java.util.Locale;

/** How the constants of enums are written for people: as they are in application.yml. */
public final class Spelling {

    private Spelling() {}

    /** Such as {@code before-authentication}. */
    public static String of(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
