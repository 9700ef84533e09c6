package io.ratelimit.actuate;

/** There is no policy, or no tier of one, of the name that was asked for. */
final class UnknownLimitException extends RuntimeException {

    private static final long serialVersionUID = 1;

    UnknownLimitException(String message) {
        super(message);
    }
}
