/** Auto-configuration for limits in a database: its storage, and the connections beside the application's pool. */
@NullMarked
package io.ratelimit.autoconfigure.jdbc;

import org.jspecify.annotations.NullMarked;
