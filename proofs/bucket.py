"""The arithmetic of a bucket in memory: BucketState, Backlog, BucketConversion and TickScale of ratelimit-core, in whole ticks.

A spec is (tokens, period, capacity, batches). A scale is (spec, advance, until). A backlog is (last promise or None, the
full-again moment after tokens were owed or None, origin or None, fastest spec or None, tokens by which the capacity fell).
A bucket is (scale, full again at, backlog). An origin is (scale, full again at, backlog, first moment of the converted state).
"""
import functools
import math

NOTHING = (None, None, None, None, 0)


@functools.lru_cache(None)
def ticks(spec):
    """Returns (clock step, ticks of a step, ticks of a token, ticks of a full bucket)."""
    tokens, period, capacity, batches = spec
    if batches:
        token = 1 << (min(24 * period // tokens, 1 << 20).bit_length() - 1)
        return period, tokens * token, token, capacity * token
    common = math.gcd(tokens, period)
    return 1, tokens // common, period // common, capacity * (period // common)


def full(scale):
    return ticks(scale[0])[3]


def price(scale, tokens):
    return min(tokens, scale[0][2]) * ticks(scale[0])[2]


def advance(scale, now):
    return scale[1] if now < scale[2] else 0


def at(scale, now):
    step, per_step, _, _ = ticks(scale[0])
    return now // step * per_step + advance(scale, now)


def at_or_after(scale, now):
    return at(scale, now + ticks(scale[0])[0] - 1)


def time_until(scale, left, now):
    if left <= 0:
        return 0
    step, per_step, _, _ = ticks(scale[0])
    return -(-(left + advance(scale, now)) // per_step) * step - now % step


def missing(scale, full_at, now):
    return max(full_at - at(scale, now), 0)


def owes(backlog, full_at):
    return backlog[1] is not None and backlog[1] == full_at


def last_promise(scale, full_at, backlog):
    shown = full_at - full(scale)
    return shown if not owes(backlog, full_at) and (backlog[0] is None or shown >= backlog[0]) else backlog[0]


def owing(backlog, promise, full_at):
    return (promise, full_at, None, backlog[3], backlog[4])


def take(bucket, cost, now, wait):
    """Returns (bucket, moment at which the tokens are due, receipt), or None. A receipt is (scale, due, room, cut)."""
    scale, full_at, backlog = bucket
    if cost > scale[0][2]:
        return None
    before, cost_ticks = missing(scale, full_at, now), price(scale, cost)
    short = before + cost_ticks - full(scale)
    if short > 0 and (wait == 0 or time_until(scale, short, now) > wait):
        return None
    taken = before + cost_ticks
    due = at(scale, now) + max(taken - full(scale), 0)
    receipt = (scale, due, min(taken, full(scale)) - cost_ticks, backlog[4])
    return (scale, at(scale, now) + taken, backlog), now + time_until(scale, taken - full(scale), now), receipt


def give_back(bucket, tokens, kept, receipt, own, now, rules=frozenset()):
    """Returns the bucket and the ticks that came back. own: the tokens were taken from this state of the bucket."""
    scale, full_at, backlog = bucket
    if own:
        return give_ticks(bucket, price(scale, tokens), price(scale, kept), receipt, now, rules)
    gain = 0 if 'a change forgets what time has brought' in rules else max_gain(bucket, receipt, now)
    unpaid = max(price(scale, tokens + kept) - gain, 0)
    return give_ticks(bucket, min(unpaid, price(scale, tokens)), 0, None, now, rules)


def give_ticks(bucket, ticks_, kept, receipt, now, rules):
    scale, full_at, backlog = bucket
    if full_at - at(scale, now) <= 0:
        return bucket, 0
    last = last_promise(scale, full_at, backlog)
    in_debt = last - at(scale, now) > 0
    back = ticks_
    if receipt is None:
        back = 0 if in_debt and 'all comes back while calls wait' not in rules else ticks_
    elif full_at - receipt[1] - receipt[2] != ticks_:
        behind = (last if in_debt else at(scale, now)) - receipt[1]
        if 'all comes back while calls wait' in rules and in_debt or 'all comes back at any time' in rules and not in_debt:
            behind = 0
        room = 0 if in_debt else max(receipt[2], 0)
        if 'a return counts what earlier returns have moved' in rules and not in_debt:
            room = receipt[2] + receipt[4]
        back = 0 if behind < 0 else min(max(ticks_ + kept + room - behind, 0), ticks_)
    if back == 0:
        return bucket, 0
    pulled = min(back, full_at - at(scale, now))
    if owes(backlog, full_at):
        backlog = owing(backlog, backlog[0], full_at - pulled)
    elif in_debt and back < ticks_ + kept and 'a return forgets the last promise' not in rules:
        backlog = owing(backlog, last, None)
    return (scale, full_at - pulled, backlog), pulled


def owe(bucket, tokens, now):
    scale, full_at, backlog = bucket
    after = missing(scale, full_at, now) + tokens * ticks(scale[0])[2]
    if after > full(scale):
        backlog = owing(backlog, last_promise(scale, full_at, backlog), at(scale, now) + after)
    return scale, at(scale, now) + after, backlog


def max_gain(bucket, receipt, now):
    """The most ticks that can have come since tokens of an earlier state were due."""
    scale, _, backlog = bucket
    old, due, _, cut_then = receipt[:4]
    step, per_step, _, _ = ticks(old[0])
    behind = at(old, now) - due
    passed = 0 if behind < 0 else -(-behind // per_step) * step + step - 1
    specs = [old[0], scale[0]] + ([backlog[3]] if backlog[3] else [])
    refill = max(max_refill(scale, passed, spec) for spec in specs)
    cut = price(scale, max(backlog[4] - cut_then, old[0][2] - scale[0][2], 0))
    return cut + min(refill, full(scale) - cut)


def max_refill(scale, passed, spec):
    tokens, period, _, batches = spec
    time = -(-passed // period) * period if batches else passed
    return min(time * tokens * ticks(scale[0])[2] // period + min(passed, 1), full(scale))


def fastest_with(backlog, spec):
    other = backlog[3]
    return spec if other is None or spec[0] * other[1] > other[0] * spec[1] else other


def convert(bucket, spec, now, rules=frozenset()):
    """Returns the bucket under another spec, with the same tokens."""
    scale, full_at, left = bucket
    if left[2] is not None and left[2][3] == full_at:
        source, source_full, backlog, _ = left[2]
    else:
        source, source_full, backlog = scale, full_at, (left[0], left[1], None, left[3], left[4])
    owed = owes(backlog, source_full)
    fastest = fastest_with(left, scale[0])
    if source[0] == spec:
        restored = at(source, now) + missing(source, source_full, now)
        promise = backlog[0] if owed else last_promise(source, restored, backlog)
        return source, restored, (promise, restored if owed else None, None, fastest, left[4])
    other = (spec, 0, 0)
    last = moment_of(source, last_promise(source, source_full, backlog), now)
    if 'a change forgets who waits' in rules:
        last = now
    lacks, ahead = converted(source, source_full, other, last, now, rules)
    base = other
    other = (spec, ahead, next_step(spec, last)) if ahead else other
    moment = at(other, now) + lacks
    promise = at(other, now) if last == now else at_or_after(other, last)
    fraction = cuts_fraction(source, base, source_full - at(source, now), now)
    origin = (source, source_full, backlog, moment) if fraction else None
    cut = left[4] + max(scale[0][2] - spec[2], 0)
    return other, moment, (promise, moment if owed else None, origin, fastest, cut)


def moment_of(scale, tick, now):
    return now + time_until(scale, tick - at(scale, now), now)


def next_step(spec, moment):
    step = ticks(spec)[0]
    return moment - moment % step + step


def converted(source, source_full, other, last, now, rules):
    def worth(moment, lower):
        return lower(source, other, missing(source, source_full, moment), moment) + at(other, moment)
    end = moment_of(source, source_full - full(source), now)
    lacks, value = worth(last, missing_under), worth(last, worth_missing)
    if end < last and 'a change skips the end of the debt' not in rules:
        lacks, value = max(lacks, worth(end, worth_missing)), max(value, worth(end, worth_missing))
    until = min(end, last)
    if until > now:
        lacks = max(lacks, full(other) + at(other, until - 1))
        value = max(value, lacks)
    return lacks - at(other, now), value - lacks


def is_simple(source, other, lacks):
    return not source[0][3] and not other[0][3] and 0 <= lacks <= full(source)


def missing_under(source, other, lacks, moment):
    token, own = ticks(other[0])[2], ticks(source[0])[2]
    kept = min((full(source) - lacks) * token // own, full(other))
    if is_simple(source, other, lacks):
        return full(other) - kept
    return full(other) - max(full(other) - worth_missing(source, other, lacks, moment), kept)


def worth_missing(source, other, lacks, moment):
    step, per_step, token, whole = ticks(other[0])
    own_step, own_per_step, own, own_whole = ticks(source[0])
    if is_simple(source, other, lacks):
        return whole - min((own_whole - lacks) * token // own, whole)
    since = moment % step if other[0][3] else 0
    own_since = moment % own_step if source[0][3] else 0
    left = own_whole - lacks - advance(source, moment)
    if token == own and step == own_step and since == own_since:
        return whole - min(left + (own_per_step - per_step) // token * (since * token // step), whole)
    worth = left + own_per_step // own * (own_since * own // own_step)
    earned = per_step * since * own
    return whole - min((worth * token * step - earned) // (step * own), whole)


def cuts_fraction(source, other, lacks, now):
    token, own, left = ticks(other[0])[2], ticks(source[0])[2], full(source) - max(lacks, 0)
    if not is_simple(source, other, max(lacks, 0)) and (
            other[0][3] and now % other[0][1] or source[0][3] and now % source[0][1]):
        return True
    return left * token % own != 0 and left * token // own < full(other)
