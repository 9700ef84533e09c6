package io.ratelimit.remote;

import io.ratelimit.ChangeBoard;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * A change board with signed changes. The signature proves that an instance with the same secret has written a change:
 * {@code hmac=…} at the end of its text. The HMAC covers the prefix of the application's keys, the limit, and the text with
 * its times, so a change can't be moved to another application or limit. Thread-safe.
 */
public abstract class SignedChangeBoard implements ChangeBoard {

    private static final String MARK = " hmac=";
    private static final String ALGORITHM = "HmacSHA256";

    /** Makes the key another one than that of the hash of keys, which are texts that clients choose. */
    private static final String PURPOSE = "changes of limits: ";

    private final String prefix;
    private final String secret;
    private final String property;
    private final String place;

    /**
     * @param prefix the prefix of the application's keys
     * @param secret empty for none
     * @param property the name of the property with the secret
     * @param place the name of the place with the changes, such as Redis
     */
    protected SignedChangeBoard(String prefix, String secret, String property, String place) {
        this.prefix = prefix;
        this.secret = secret;
        this.property = property;
        this.place = place;
    }

    @Override
    public final String place() {
        return place;
    }

    @Override
    public final String secretProperty() {
        return property;
    }

    @Override
    public final boolean areSigned() {
        return !secret.isEmpty();
    }

    @Override
    public final String sign(String limit, String change) {
        return areSigned()
                ? change + MARK + Base64.getUrlEncoder().withoutPadding().encodeToString(hmac(limit, change))
                : change;
    }

    @Override
    public final String verify(String limit, String value) {
        int mark = value.lastIndexOf(MARK);
        if (!areSigned()) {
            if (mark >= 0) {
                throw new IllegalArgumentException("it has an HMAC, and this instance has no '" + property + "'");
            }
            return value;
        }
        String change = mark < 0 ? value : value.substring(0, mark);
        // isEqual compares in a time that doesn't depend on the bytes.
        if (mark < 0 || !MessageDigest.isEqual(bytes(sign(limit, change)), bytes(value))) {
            throw new IllegalArgumentException("it has " + (mark < 0 ? "no HMAC" : "a wrong HMAC")
                    + ", so no instance with this '" + property + "' has written it for this limit: remove it from "
                    + place
                    + ", find out who can write there, and send changes to the actuator");
        }
        return change;
    }

    /** Returns the HMAC of the three texts. The lengths separate them. */
    private byte[] hmac(String limit, String change) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(bytes(PURPOSE + secret), ALGORITHM));
            return mac.doFinal(bytes(prefix.length() + ":" + prefix + limit.length() + ":" + limit + change));
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this JVM has no " + ALGORITHM, missing);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
