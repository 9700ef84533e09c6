package io.ratelimit.redis;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The value of a bucket in Redis as readable text: the moment, the missing ticks, and the text after them. */
final class KeptValue {

    private KeptValue() {}

    static String text(byte[] value) {
        ByteBuffer numbers = ByteBuffer.wrap(value);
        return whole(numbers.getDouble()) + " " + whole(numbers.getDouble()) + " "
                + StandardCharsets.US_ASCII.decode(numbers);
    }

    private static String whole(double number) {
        return number == Math.rint(number) ? Long.toString((long) number) : Double.toString(number);
    }
}
