/**
 * A command that decides the requests of access logs by the policies of an {@code application.yml}.
 *
 * <p>Start at {@link io.ratelimit.replay.ReplayCommand}. A {@code LogReader} and a {@code LogFormat} turn lines into
 * entries, {@code ReplayPolicies} binds the real policies, {@code Replay} decides each entry on a {@code ReplayClock},
 * and a {@code TextReport} and a {@code JsonReport} show its {@code Findings}. Nothing here is an API.
 */
@NullMarked
package io.ratelimit.replay;

import org.jspecify.annotations.NullMarked;
