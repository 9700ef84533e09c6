package io.ratelimit.redis;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** What Redis keeps of a bucket, for people: the moment, what is missing, and the text behind them. */
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
