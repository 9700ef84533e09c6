package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.TokenBucket;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;

/**
 * The speed of a shaped stream in the ten seconds after the first bucketful. Prints, for several rates and buckets, the
 * measured bytes a second and their deviation from the rate in percent.
 */
public final class ShapingMeasurement {

    private static final double SECONDS = 10;

    /** A rate in bytes a second, and the bucket's capacity. */
    private record Shape(long rate, long capacity) {

        TokenBucket bucket() {
            return TokenBucket.of(BucketSpec.of(rate + "/1s").withCapacity(capacity));
        }

        /** Returns a buffer for a fifth of a second. */
        byte[] buffer() {
            return new byte[(int) Math.max(rate / 5, 1)];
        }

        void print(String direction, double bytesPerSecond) {
            System.out.printf(
                    "%s, %d bytes/s, bucket of %d\t%.0f\t%.3f%n",
                    direction, rate, capacity, bytesPerSecond, 100 * (bytesPerSecond / rate - 1));
        }
    }

    private static final List<Shape> SHAPES = List.of(
            new Shape(10_000, 10_000),
            new Shape(10_000, 10),
            new Shape(1_000_000, 1_000_000),
            new Shape(1_000_000, 1_460),
            new Shape(100_000_000, 100_000_000),
            new Shape(100_000_000, 65_536),
            new Shape(500_000_000, 500_000_000),
            new Shape(500_000_000, 65_536));

    private ShapingMeasurement() {}

    public static void main(String[] args) throws IOException {
        for (Shape shape : SHAPES) {
            shape.print("write", written(shape));
            shape.print("read", read(shape));
        }
    }

    private static double written(Shape shape) throws IOException {
        try (OutputStream shaped = shape.bucket().shape(OutputStream.nullOutputStream())) {
            byte[] buffer = shape.buffer();
            for (long left = shape.capacity(); left > 0; left -= buffer.length) {
                shaped.write(buffer, 0, (int) Math.min(left, buffer.length));
            }
            long start = System.nanoTime();
            long bytes = 0;
            while (seconds(start) < SECONDS) {
                shaped.write(buffer);
                bytes += buffer.length;
            }
            return bytes / seconds(start);
        }
    }

    private static double read(Shape shape) throws IOException {
        try (InputStream shaped = shape.bucket().shape(new Endless())) {
            byte[] buffer = shape.buffer();
            for (long left = shape.capacity(); left > 0; ) {
                left -= shaped.read(buffer, 0, (int) Math.min(left, buffer.length));
            }
            long start = System.nanoTime();
            long bytes = 0;
            while (seconds(start) < SECONDS) {
                bytes += shaped.read(buffer);
            }
            return bytes / seconds(start);
        }
    }

    private static double seconds(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    private static final class Endless extends InputStream {
        @Override
        public int read() {
            return 0;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) {
            return length;
        }
    }
}
