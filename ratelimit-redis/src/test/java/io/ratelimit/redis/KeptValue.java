package io.ratelimit.redis;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The value of a bucket in Redis as readable text: the moment, the missing ticks, those given back if any, and the text. */
final class KeptValue {

    private KeptValue() {}

    static String text(byte[] value) {
        ByteBuffer numbers = ByteBuffer.wrap(value);
        String moment = whole(numbers.getDouble());
        String missing = whole(numbers.getDouble());
        String returned = numbers.getDouble() < 0 ? whole(numbers.getDouble()) + " " : "";
        return moment + " " + missing + " " + returned + StandardCharsets.US_ASCII.decode(numbers);
    }

    private static String whole(double number) {
        return number == Math.rint(number) ? Long.toString((long) number) : Double.toString(number);
    }
}
