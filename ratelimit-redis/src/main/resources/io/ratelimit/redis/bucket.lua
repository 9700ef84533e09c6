--[[
Takes tokens from buckets, looks at buckets, or gives tokens back.

State. A bucket is two numbers: the ticks that it has fewer than a full bucket (missing), and the moment of that count
in microseconds of the server's clock (at). Time brings tokens, so missing shrinks by itself. A full bucket has no key.
Both numbers are whole. The unit is the tick, chosen in Java for each spec so that a step of the clock is n ticks and a
token is d ticks: nothing is rounded. A spec is written "n/d/c/s": c is the capacity in tokens, s the microseconds of a
step. A step is 1 microsecond; 1000 if the rate fits no microsecond; the period if tokens come back in batches. The
value of a key is

    at | missing | begun |[ returned |] n/d/c/s[ promised][ +until][ ~advance][ !][ ^leased@end][ &due:tokens,...]

Those before the spec are doubles of eight bytes, the numbers of Lua, with the highest byte first: writing and reading digits
would cost as much as the rest of the script. If returned isn't 0, it follows, and -begun - 1 is written for begun.
Example: at 600/1m with capacity 800, n is 1 and d is 100000. The value
1795000000000000, 250000, 1795000000000000, "1/100000/800/1" is a bucket that lacks two and a half tokens, and is full a
quarter of a second after that moment.

Take. A take adds the price of the tokens to missing, if the sum is at most a full bucket. A call that may wait takes ahead:
the sum may exceed a full bucket by the ticks that come back within the wait. The excess is the debt of the bucket, and the
wait of the call. During a debt no call takes at once, so calls are served in their order.

Give. A give subtracts the price from missing, but keeps all promises: later calls that took ahead rely on these tokens being
gone. Only the part beyond the later promises comes back. The debt then no longer shows how far the last promise reaches, so
these ticks are kept in the value (promised), and shrink with time as missing does.

A late give must not add to the tokens that time has brought already. Time first pays for what was missing before the
take, then for the price of the tokens; only the unpaid part of the price comes back. Ticks given back since the take
count as paid too, since they may have been missing before the take. Therefore the value counts all ticks given back
(returned). A take replies this count, and the give of its tokens passes it. At half of MOST the count stops: from then on
all that was missing before a take counts as given back.

When a bucket is full, and every promised moment has passed, time has paid for each earlier take. So the count may be
forgotten then, with the key or without, and begins anew. It also begins anew when the bucket is converted to another spec.
The value names the count by the moment at which it began, or by one more than the last name if that is greater (begun).
A take replies begun, and the give of its tokens passes it. A give that passes another one gives nothing back: its tokens were
taken before the bucket was full or was deleted, or under another spec.
A deletion and a new take get another name, since this script runs for longer than a microsecond. Only a clock that is set back
to the very microsecond of the first take gives both one name.

The moment at which tokens were due is one of the bucket's time. If the clock was ahead and has been corrected, the give moves
it back as it moves the bucket's moment. If another call has written the corrected moment before, how much time has paid is
unknown, and nothing comes back until the clock reaches the due moment once more. From then on the tokens count as just taken.

A give may return a part of the tokens, because the call cost less than its estimate. The part that is kept then counts as the
first part of the price: time pays for it before the rest.

Owe. A call that cost more than its estimate adds the difference to missing, also beyond a full bucket, but no further than the
ticks of 365 days. No call was promised the end of this debt. As long as the debt shows more than was promised, the last promise
is kept as promised, with a mark (!) at the end of the value. The next take removes the mark: it was promised the end of the debt.

Lease. A lease takes tokens that one instance uses by itself until the end of the lease. In other words, the tokens that a
take at time t takes own a stretch of the bucket's time line: from the later of t and the moment at which the bucket was full
before, to the moment at which it is full after. Stretches never overlap, so the grants of any time of length D own stretches
within D plus the time to full: these are at most the capacity and the refill of D. Two things must hold for each token: it is
used no later than its stretch begins, and the stretch ends within the time to full after the use. The tokens of a lease are used
after they are taken. Therefore their stretch begins at the end of the lease or later: missing is raised at least to the ticks
that come back until then (the hold), and the tokens come on top. Half of the remaining tokens at most are leased; the last ones
are taken one price at a time.
A give moves the end of the time line back, and with it the stretches of leases. Therefore a second level counts leases alone
(leased), and no give reduces missing below it. It is written, with the end of the last lease in microseconds, only while
leases are out. A take on top of leases may then have to move before them, and time pays for it sooner: the leased ticks were
missing before the take, but they don't count as such. The reply has fewer ticks given back by as many.
A lease is no promise to a caller that waits: if there is a promise or an advance, only the price is taken. A lease of 0
microseconds is several takes at once, which only an advance prevents.

Another spec. A value written under another spec counts under that spec until the latest of three moments: now, the last
promised moment, and the end of the last lease. The tokens present at that moment are kept, cut to the new capacity. But
some of them may be tokens that were given back, and the old rate brings those only until that moment. A slower spec
therefore counts from the end of the debt, if the bucket has fewer tokens then. After a promise, the moment is kept as
promised, with a minus sign. The batch that ends a debt may leave tokens over, which aren't there before: until the end of
the debt at least a full bucket is missing. A conversion is written by a successful take. A denied take writes it only if
its tokens come sooner under the new spec: a conversion may cut off a fraction of a token, and if calls under two specs
were denied in turn, the bucket would never refill.

Batches. If tokens came one by one under one spec and in batches under another, and both counted in full, the two rates
would add up. So a bucket with batches is worth its tokens plus the part of the next batch that the time since the last
one has earned. A conversion keeps this worth, rounded down, up to the new capacity. A token in batches is d ticks, a
power of two, and a batch is n ticks, so d divides n. The time since the last batch counts in d parts of the period. At
the same part of the same period, what two specs have earned is whole for both, so specs that take turns lose no tokens.
Between different periods a part that has begun counts as still to come for the old spec, and as passed for the new one.
The tokens are kept as well: the part of the next batch that would count as earned already is missing, but calls may
take it until that batch comes (advance). While calls wait, the advance is 0.

The value is kept at least until the bucket would have been full under the old spec (until, in seconds), even if nothing
is missing. A key without a value is a full bucket under any spec. Without this rule, when instances differ during a
deployment, the faster of two specs would make Redis forget the bucket of the slower.

A key expires within a second after its bucket is full: a tenth of a second after the next multiple of 0.9 seconds (LIFE). Many
takes of a busy key leave this moment as it was. They keep the expiry, since to set it costs Redis almost as much as to write the value.

A value of another form is an error. The script neither uses nor overwrites it.

Numbers. Doubles are exact for whole numbers up to 2^53, about 9.007e15. Kept numbers are at most MOST. A product that could
be larger is only compared with a smaller number, or limited by one: rounding keeps the order. The rounded quotient of two such
numbers is exact too. tostring keeps 14 digits, hence the formats. From Lua 5.3 on, which some servers have, whole numbers in
texts are integers, whose products wrap around. Adding 0.0 to each number of a text makes it a double there too.

Time. The clock is the server's, read once; tests pass a time. If it steps back, the time of a bucket stands still until its
moment. If that moment is more than a minute and a step ahead, the clock was ahead and has been corrected. The moment then
becomes the next one at the same place within a step. So missing stays, no batch comes twice, and time counts again. This is
written by a denied take too, as otherwise each denial would repeat it.

Everything is computed before the first write, so an error leaves nothing half done. A denial takes nothing and mostly writes
nothing.

Calendar. For a bucket with calendar refill, "the time" is that of a calendar on which all days, weeks or months have
one length, longer than any true one: how many have begun since 1970, and the share of the present one that has passed.
Apart from that it is a bucket with batches, kept under a key of its own. The arguments contain the beginnings of three
periods around the server's time, as far as the caller knows it. If the server's time is outside these periods, the script
writes nothing and replies this time alone, and the caller repeats the call with other periods.

Shares. A bucket may be the pool of guaranteed shares. A take then leaves the reserve. If the pool doesn't have so much, the
take's lane serves it if it has the tokens: pool and lane pay. All lanes of a pool are one sorted set: the score of a lane
is the moment at which it is full again, in eighths of a microsecond since LANES_EPOCH. A full lane is like none. There
are never more others than the argument allows; a take that finds no room has no lane. A lane gets back no more
tokens than its pool. A lane that would be full more than a minute and the longest wait later than an empty one is empty: the clock
was ahead, or the share was larger. This is written by a denied take too.
A call that may wait takes the tokens ahead from its lane alone, which is then in debt. The pool pays at the moment at which the lane
has the tokens (due, in microseconds), and not before: until then the pool's tokens are those of other lanes. Until then the moment
and the tokens are in the pool's value. A call that stops waiting is removed from there, and its lane gets the tokens back if no
later call waits for the lane. A lane in debt gets nothing else back.

KEYS     the buckets; one may occur twice. Then the sets of lanes
ARGV     for each bucket numbers as in a value, followed by the spec
           to take or look: n, s, the ticks of a full bucket, the price, the microseconds that the call may wait, or below zero
             the ticks that the call has to leave
           to lease: the same, the microseconds of the lease, and the most ticks to take. A lease of 0 microseconds takes
             the price as often as it fits at once
           to give: the tokens; when they were due: the step (-1 if it isn't recorded), and the ticks after the step; the ticks
             missing before them at that time, plus the ticks given back until the take; the tokens of the same take that are
             kept, or -1 if the bucket owes the tokens; begun as the take replied it
           for each lane: -2, the place of its pool, the tokens to take or give, the eighths of a microsecond of a token and of
             a full lane, the most lanes, the eighths of the longest wait for a lane and for that of this call, and the name of
             the lane
           before these, for calendar refill: -1, the length of a period, the number of the first, and the beginnings of four
         then take (the default), each, lease, look (replies as take and writes nothing) or give. With each, every bucket is
           taken from by itself, whatever the others have, unless the word goes on with a plus at the bucket's place: then it is
           taken from together with the bucket before it, or neither is. Any may have the numbers of a lease. An empty argument
           is like the last one to take
         then, in tests only, the time
Returns, to take or look, for each bucket its time and the missing ticks, as in a value; if the tokens are short, the missing
ticks without them plus one, negative. Otherwise begun follows, and then, if it isn't 0, the ticks given back until then,
less those of leases. A take at once replies the value that it wrote, with the spec, since to cut it off would cost more.
After a lease that took more than the price, the fourth number follows always, and a fifth: the ticks taken. If the bucket's time stands still, because the clock was
set back, a take replies five numbers, and then the bucket's time.
With each, the text is empty for buckets whose call has to be made alone; nothing is taken from them.
For each lane: nothing if it doesn't count, else its time as in the set and what it is missing; if it doesn't serve the
call, the same plus one, negative. For a call that waits for its lane, the pool replies as if it were taken from when the lane has
the tokens, without the calls until then.
If the server's time is outside the periods of a bucket with calendar refill, any operation returns this time alone.
]]

local MOST = 8e15
local SLACK = 1000
local AHEAD = 60 * 1000000
local LIFE = 9e5
local LONGEST_DEBT = 365 * 24 * 3600 * 1000000
local LANE = 192 -- the first byte of -2
local LANES_EPOCH = 1700000000000000

local pack, unpack = struct.pack, struct.unpack
local operation, now = ARGV[#KEYS + 1] or 'take', ARGV[#KEYS + 2]
if now then
    now = now + 0.0
    SLACK = 600000 -- the time of a test may stand still while the server's clock runs
else
    local time = redis.call('TIME')
    now = time[1] * 1000000.0 + time[2]
end

-- The numbers and the spec of an argument to take or look.
local function wanted(argument)
    local n, s, full, price, wait = unpack('>ddddd', argument)
    return n, s, full, price, wait, string.sub(argument, 41)
end

-- The most frequent case: a take at once from a bucket under the same spec. This function has the arithmetic of the
-- code below without its tables and functions, and is more than twice as fast. Returns the value to write, the time that
-- it has to live, and whether the key lives for so long already; only the reply if the tokens are short; nothing if the
-- code below has to decide. All inputs are parameters, since upvalues cost Lua more. For whole numbers, x + -x % y is x
-- rounded up to a multiple of y.
local function take_at_once(key, now, n, s, full, price, wait, spec)
    local value = redis.pcall('GET', key)
    local at, missing, begun, expires = now, 0, now, 0
    if value then
        if #value ~= 24 + #spec or not string.find(value, spec, 25, true) then
            return -- an error has no length
        end
        at, missing, begun = unpack('>ddd', value)
        expires = at + (missing + -missing % n) / n * s - at % s
        expires = expires + -expires % 9e5
    end
    if wait > 0 or not (at >= 0 and at <= now and missing >= 0 and missing <= 8e15 and begun >= 0 and begun <= 8e15) then
        return
    end
    local since_step = now % s
    missing = missing - (now - since_step - at + at % s) / s * n
    if missing < 0 then
        missing = 0
    end
    local after = missing + price
    if after > full + wait then
        return pack('>dd', now, -missing - 1)
    end
    local expiry = now + (after + -after % n) / n * s - since_step
    expiry = expiry + -expiry % 9e5
    return pack('>dddc0', now, after, begun, spec), expiry - now, expiry == expires
end

-- Writes the result of such a take. Returns the error, unless the function raises it.
local function set(call, key, value, micros, lives)
    if not lives or redis.pcall('SET', key, value, 'KEEPTTL').err then -- before Redis 6.0 there is no such option
        return call('SET', key, value, 'PX', math.ceil(micros / 1000) + SLACK - 900).err
    end
end

-- When the value of a bucket is to expire.
local function expiry(at, missing, n, s)
    return math.ceil((at + math.ceil(missing / n) * s - at % s) / LIFE) * LIFE
end

-- Does what take_at_once does, for a lease, and for a take from a bucket whose value has nothing but leases behind its spec. Returns
-- the reply first.
local function lease_at_once(key, now, n, s, full, price, wait, micros, most, spec)
    local value = redis.pcall('GET', key)
    local at, missing, begun, leased, lease_end = now, 0, now, 0, 0
    if value then
        if #value < 24 + #spec or string.find(value, spec, 25, true) ~= 25 then
            return
        end
        at, missing, begun = unpack('>ddd', value)
        if #value > 24 + #spec then
            leased, lease_end = string.match(value, '^ %^(%d+)@(%d+)$', 25 + #spec)
            leased, lease_end = (tonumber(leased) or -1) + 0.0, (tonumber(lease_end) or -1) + 0.0
        end
    end
    if wait ~= 0 or not (at >= 0 and at <= now and missing >= 0 and missing <= full and begun >= 0 and begun <= MOST
            and leased >= 0 and leased <= MOST and lease_end >= 0 and lease_end <= MOST) then
        return
    end
    local expires = value and expiry(at, missing, n, s)
    local since_step = now % s
    local passed = (now - since_step - at + at % s) / s * n
    missing, leased = math.max(missing - passed, 0), math.max(leased - passed, 0)
    local ticks = 0
    if most > price and micros > 0 then
        local held = math.min((math.floor((now + micros) / s) - (now - since_step) / s) * n, MOST)
        local base, d = math.max(missing, held), string.match(spec, '/(%d+)') + 0.0
        ticks = math.min(most, math.floor((full - base) / (2 * d)) * d)
        if ticks > price then
            missing, leased, lease_end = base, math.max(leased, held) + ticks, math.max(lease_end, now + micros)
        end
    elseif most > price then
        ticks = math.floor(math.min(most, full - missing) / price) * price
    end
    local reply
    if ticks > price then
        missing = missing + ticks
        reply = pack('>ddddd', now, missing, begun, 0 - leased, ticks)
    elseif missing + price > full then
        return pack('>dd', now, -missing - 1)
    else
        missing = missing + price
        reply = pack('>ddd', now, missing, begun) .. (leased > 0 and pack('>d', -leased) or '')
    end
    if missing == 0 then
        return -- nothing was to be taken, and the bucket is full
    end
    value = pack('>ddd', now, missing, begun) .. spec
    if leased > 0 then
        value = value .. string.format(' ^%.0f@%.0f', leased, lease_end)
    end
    local new_expiry = expiry(now, missing, n, s)
    return reply, value, new_expiry - now, new_expiry == expires
end

-- The numbers and the spec of an argument to lease.
local function wanted_lease(argument)
    local n, s, full, price, wait, micros, most = unpack('>ddddddd', argument)
    return n, s, full, price, wait, micros, most, string.sub(argument, 57)
end

-- A bucket that can't be read concerns no other call: the caller makes its call alone, and gets the error then. An error of the
-- first write, as of a full memory, concerns all calls, and nothing is taken.
if string.byte(operation) == 101 then -- each
    local replies, values, micros, lives = {}, {}, {}, {}
    local first, decided, allowed, write = 1, true, true, redis.call
    local n, s, full, price, wait, spec
    for i = 1, #KEYS do
        local key, argument = KEYS[i], ARGV[i]
        local sixth = string.byte(argument, 41)
        if sixth and (sixth < 48 or sixth > 57) then -- a number, and not the spec
            replies[i], values[i], micros[i], lives[i] = lease_at_once(key, now, wanted_lease(argument))
        else
            if sixth then
                n, s, full, price, wait, spec = wanted(argument)
            end
            local value, life, same = take_at_once(key, now, n, s, full, price, wait, spec)
            if value then
                replies[i], values[i], micros[i], lives[i] = value, value, life, same
            elseif wait == 0 then
                replies[i], values[i], micros[i], lives[i] = lease_at_once(key, now, n, s, full, price, wait, 0, 0, spec)
            end
        end
        decided, allowed = decided and replies[i], allowed and micros[i]
        for j = first, i - 1 do
            decided = decided and KEYS[j] ~= key
        end
        if string.byte(operation, 5 + i) ~= 43 then -- the last bucket of its call
            for j = first, decided and allowed and i or 0 do
                decided = decided and not set(write, KEYS[j], values[j], micros[j], lives[j])
                write = redis.pcall
            end
            for j = first, decided and 0 or i do
                replies[j] = ''
            end
            first, decided, allowed = i + 1, true, true
        end
    end
    return replies
end

local at_once = operation == 'take'
if #KEYS == 1 and (at_once or operation == 'lease') and string.byte(ARGV[1]) < 128 then -- no calendar
    local reply, value, micros, lives
    if at_once then
        local n, s, full, price, wait, spec = wanted(ARGV[1])
        value, micros, lives = take_at_once(KEYS[1], now, n, s, full, price, wait, spec)
        reply = value
        if not reply and wait == 0 then
            reply, value, micros, lives = lease_at_once(KEYS[1], now, n, s, full, price, wait, 0, 0, spec)
        end
    else
        reply, value, micros, lives = lease_at_once(KEYS[1], now, wanted_lease(ARGV[1]))
    end
    if micros then
        set(redis.call, KEYS[1], value, micros, lives)
    end
    if reply then
        return reply
    end
    at_once = false
elseif at_once and #KEYS == 2 and string.byte(ARGV[1]) < 128 and string.byte(ARGV[2]) == LANE then
    local value, micros, lives = take_at_once(KEYS[1], now, wanted(ARGV[1]))
    if micros then
        set(redis.call, KEYS[1], value, micros, lives)
        return value
    end
    at_once = false
end

local server_time = now

-- The sets of lanes are behind the buckets.
local count, lane_places = #KEYS, {}
while string.byte(ARGV[count]) == LANE do
    local _, pool = unpack('>dd', ARGV[count])
    lane_places[pool] = count
    count = count - 1
end

-- Returns the reply to a caller whose periods are others.
local function other_periods()
    return pack('>d', server_time)
end

-- Returns the time of a bucket, and its arguments without those about a calendar; nothing if the server's time is outside
-- the periods of the calendar. The sign is in the first bit.
local function time_and_arguments(argument)
    if string.byte(argument) < 128 then
        return server_time, argument
    end
    local _, period, count, first, second, third, fourth = unpack('>ddddddd', argument)
    if server_time < first or server_time >= fourth then
        return
    end
    local from, to = first, second
    if server_time >= third then
        from, to, count = third, fourth, count + 2
    elseif server_time >= second then
        from, to, count = second, third, count + 1
    end
    local share = math.floor((server_time - from) / (to - from) * period)
    return count * period + math.min(share, period - 1), string.sub(argument, 57)
end

if at_once and count == #KEYS then
    local replies, micros, lives, all = {}, {}, {}, true
    for i = 1, #KEYS do
        local time, argument = time_and_arguments(ARGV[i])
        if not time then
            return other_periods()
        end
        replies[i], micros[i], lives[i] = take_at_once(KEYS[i], time, wanted(argument))
        for j = 1, i - 1 do
            if KEYS[j] == KEYS[i] then
                replies[i] = nil
            end
        end
        if not replies[i] then
            replies = nil
            break
        end
        all = all and micros[i]
    end
    if replies then
        for i = 1, all and #KEYS or 0 do
            set(redis.call, KEYS[i], replies[i], micros[i], lives[i])
        end
        return replies
    end
end

local function numbers(spec)
    local n, d, c, s = string.match(spec, '^(%d+)/(%d+)/(%d+)/(%d+)$')
    return n + 0.0, d + 0.0, c + 0.0, s + 0.0
end

-- Forgets the count of given back ticks: no earlier take gives anything back.
local function begin(bucket)
    bucket.begun, bucket.returned = math.max(bucket.at, bucket.begun + 1), 0
end

-- Brings a bucket to a moment.
local function pass(bucket, now)
    local at, s = bucket.at, bucket.s
    if now > at then
        local steps = s == 1 and now - at or math.floor(now / s) - math.floor(at / s)
        local passed = steps * bucket.n
        bucket.missing = math.max(bucket.missing - passed, 0)
        if bucket.promised > 0 then
            bucket.promised = math.max(bucket.promised - steps * bucket.n, 0)
            bucket.moved = bucket.moved and bucket.promised > 0
        end
        bucket.leased = math.max(bucket.leased - passed, 0)
        if passed > 0 then
            bucket.advance = 0
        end
        bucket.at = now
    end
    if bucket.returned > 0 and bucket.missing == 0 and bucket.promised == 0 then
        begin(bucket)
    end
    if bucket.kept_until * 1000000 <= now then
        bucket.kept_until = 0
    end
end

-- Brings a bucket to the present. Calls that have waited for their lanes take their tokens at the moments that they waited for.
local function pass_all(bucket)
    local waiting = bucket.waiting
    while waiting[1] and waiting[1].due <= math.max(now, bucket.at) do
        local call = table.remove(waiting, 1)
        pass(bucket, call.due)
        local _, d, c = numbers(bucket.spec)
        bucket.missing = math.min(bucket.missing + math.min(call.tokens, c) * d, MOST)
    end
    pass(bucket, now)
end

-- The ticks taken ahead by calls that wait.
local function debt(bucket)
    return bucket.missing > bucket.full + bucket.advance and bucket.missing - bucket.full or 0
end

-- The ticks until the last promised moment.
local function last_promise(bucket)
    return bucket.owes and bucket.promised or math.max(debt(bucket), bucket.promised)
end

-- The ticks until the end of the last lease.
local function lease_left(bucket)
    local left = math.ceil(bucket.lease_end / bucket.s) - math.floor(bucket.at / bucket.s)
    return bucket.leased > 0 and math.min(math.max(left, 0) * bucket.n, MOST) or 0
end

-- The ticks until the value expires.
local function longest(bucket)
    return math.max(bucket.missing, bucket.promised)
end

-- The moment at which time has paid the given ticks.
local function full_at(bucket, missing)
    return bucket.at + math.ceil(missing / bucket.n) * bucket.s - bucket.at % bucket.s
end

-- The microseconds until a bucket has the ticks, or more than any wait.
local function micros_until(bucket, ticks)
    local micros = math.ceil(ticks / bucket.n) * bucket.s
    return micros > MOST and MOST or micros - bucket.at % bucket.s
end

-- The ticks missing under a spec of d ticks a token and c tokens for the ticks of another spec.
local function kept_missing(have, old_d, d, c)
    local tokens = math.floor(have / old_d)
    if tokens >= c then
        return 0
    end
    local rest = have - tokens * old_d
    local part = math.floor(rest * d / old_d)
    if rest * d > MOST then
        part = math.max(math.floor(rest / old_d * d) - 1, 0)
    end
    return math.min(c * d - (tokens * d + part), MOST)
end

-- Whether tokens come in batches.
local function has_batches(n, d, s)
    return s > 1 and n % d == 0
end

-- The ticks of the next batch that the time since the last one has earned, in whole parts; 0 if tokens come one by one.
local function earned(n, d, s, moment)
    return has_batches(n, d, s) and n / d * math.floor(moment % s * d / s) or 0
end

-- The ticks missing now under another spec that counts once the given ticks have passed.
local function missing_under(bucket, ticks, old_d, n, d, c, s)
    local from, steps = bucket.at, 0
    if ticks > 0 then
        steps = math.ceil(ticks / bucket.n)
        from = bucket.at + steps * bucket.s - bucket.at % bucket.s
    end
    local have = bucket.full - math.max(bucket.missing - steps * bucket.n, 0)
    local before, after = earned(bucket.n, old_d, bucket.s, from), has_batches(n, d, s) and n / d * (from % s) / s or 0
    local kept
    if d == old_d and s == bucket.s then
        kept = math.min(math.max(c * d - (have + before - earned(n, d, s, from)), 0), MOST)
    elseif before == 0 and after == 0 then
        kept = kept_missing(have, old_d, d, c)
    else
        local tokens = (have + before) / old_d
        local worth = tokens - after - (math.abs(tokens) + after) * 1e-15
        kept = c * d - math.min(math.floor(worth * d), c * d)
    end
    return math.min(kept + (math.floor(from / s) - math.floor(bucket.at / s)) * n, MOST), from
end

-- Converts a bucket to another spec.
local function convert(bucket, spec)
    local _, old_d = numbers(bucket.spec)
    local n, d, c, s = numbers(spec)
    local promised = math.max(last_promise(bucket), lease_left(bucket))
    if longest(bucket) > 0 then
        bucket.kept_until = math.max(bucket.kept_until, math.ceil(math.min(full_at(bucket, longest(bucket)), MOST) / 1000000))
    end
    local in_debt = math.min(debt(bucket), promised)
    local missing, served = missing_under(bucket, promised, old_d, n, d, c, s)
    local at_end, end_of_debt = missing_under(bucket, in_debt, old_d, n, d, c, s)
    if in_debt > 0 then
        local until_end = math.floor((end_of_debt - 1) / s) - math.floor(bucket.at / s)
        at_end = math.max(at_end, math.min(c * d + until_end * n, MOST))
    end
    local kept = kept_missing(bucket.full - math.max(bucket.missing - bucket.advance, 0), old_d, d, c)
    bucket.missing = math.max(missing, at_end)
    bucket.advance = promised > 0 and 0 or math.max(bucket.missing - kept, 0)
    bucket.promised = promised > 0 and math.min((math.ceil(served / s) - math.floor(bucket.at / s)) * n, MOST) or 0
    bucket.moved = promised > 0
    bucket.leased = 0 -- no give reaches below what is missing now
    begin(bucket)
    bucket.spec, bucket.n, bucket.s, bucket.full = spec, n, s, c * d
end

local NO_BUCKET = 'BADVALUE the value of a key of ratelimit is no bucket'

-- Returns whether a value may have the number.
local function counts(number, least)
    return number >= least and number <= MOST
end

-- Returns the present state of the bucket of a key, under the spec in its value.
local function read(key, spec, n, s, full)
    local value = redis.call('GET', key)
    if not value then
        return {missing = 0, promised = 0, kept_until = 0, returned = 0, advance = 0, leased = 0, lease_end = 0,
            waiting = {}, corrected_steps = 0, begun = now, now = now, at = now, spec = spec, n = n, s = s, full = full}
    end
    if #value < 24 then
        error(NO_BUCKET)
    end
    local at, missing, begun, returned = unpack('>dddd', value .. '        ')
    local text = 33
    if begun >= 0 then
        returned, text = 0, 25
    else
        begun = -begun - 1
    end
    local written, promised, kept_until, advance, owes, leased, lease_end, calls =
        string.match(value, '^(%d+/%d+/%d+/%d+) ?(%-?%d*) ?%+?(%d*) ?~?(%d*) ?(!?) ?%^?(%d*)@?(%d*) ?&?([%d:,]*)$', text)
    if not written then
        error(NO_BUCKET)
    end
    promised, kept_until = (tonumber(promised) or 0) + 0.0, (tonumber(kept_until) or 0) + 0.0
    advance, leased, lease_end = (tonumber(advance) or 0) + 0.0, (tonumber(leased) or 0) + 0.0, (tonumber(lease_end) or 0) + 0.0
    if written ~= spec then
        local d, c
        n, d, c, s = numbers(written)
        full = c * d
        if not (counts(n, 1) and counts(d, 1) and counts(c, 1) and counts(s, 1) and counts(full, 1)) then
            error(NO_BUCKET)
        end
    end
    if not (counts(at, 0) and counts(missing, 0) and counts(begun, 0) and begun % 1 == 0
            and counts(math.abs(promised), 0) and counts(kept_until * 1000000, 0) and counts(returned, 0) and counts(advance, 0) and counts(leased, 0) and counts(lease_end, 0)) then
        error(NO_BUCKET)
    end
    local waiting, written_at = {}, at
    local ran_ahead, corrected_steps = at - now > AHEAD + s, 0
    if ran_ahead then
        lease_end = math.max(lease_end - at, 0)
        corrected_steps = math.floor((at - now - 1) / s)
        at = now + 1 + (at - now - 1) % s
        lease_end = lease_end + at
    end
    for due, tokens in string.gmatch(calls, '(%d+):(%d+)') do
        waiting[#waiting + 1] = {due = math.max(due - written_at, 0) + at, tokens = tokens + 0.0}
    end
    local bucket = {missing = missing, promised = math.abs(promised), moved = promised < 0, kept_until = kept_until,
        returned = returned, advance = advance, leased = leased, lease_end = lease_end, ran_ahead = ran_ahead, waiting = waiting,
        corrected_steps = corrected_steps, begun = begun, now = now, at = at, spec = written, n = n, s = s, full = full}
    pass_all(bucket)
    bucket.owes = owes == '!' and debt(bucket) > 0
    return bucket
end

local function write(key, bucket)
    local ticks = longest(bucket)
    if ticks == 0 and bucket.kept_until == 0 and not bucket.waiting[1] then
        redis.call('DEL', key)
        return
    end
    local value = bucket.returned == 0 and pack('>ddd', bucket.at, bucket.missing, bucket.begun)
        or pack('>dddd', bucket.at, bucket.missing, -bucket.begun - 1, bucket.returned)
    value = value .. bucket.spec
    local owes = bucket.owes and debt(bucket) > 0
    if bucket.moved then
        value = value .. string.format(' -%.0f', bucket.promised)
    elseif bucket.promised > (owes and 0 or debt(bucket)) then
        value = value .. string.format(' %.0f', bucket.promised)
    end
    local last = ticks > 0 and full_at(bucket, ticks) or bucket.at
    if bucket.kept_until > 0 then
        value = value .. string.format(' +%.0f', bucket.kept_until)
        last = math.max(last, bucket.kept_until * 1000000)
    end
    if bucket.advance > 0 then
        value = value .. string.format(' ~%.0f', bucket.advance)
    end
    if owes then
        value = value .. ' !'
    end
    if bucket.leased > 0 then
        value = value .. string.format(' ^%.0f@%.0f', bucket.leased, bucket.lease_end)
    end
    if bucket.waiting[1] then
        local _, d = numbers(bucket.spec)
        local calls = {}
        for i, call in ipairs(bucket.waiting) do
            calls[i] = string.format('%.0f:%.0f', call.due, call.tokens)
            last = math.max(last, call.due) + math.ceil(call.tokens * d / bucket.n) * bucket.s
        end
        value = value .. ' &' .. table.concat(calls, ',') -- joined at once: many calls may wait
    end
    local micros = math.min(math.ceil(last / LIFE) * LIFE - bucket.now, MOST)
    redis.call('SET', key, value, 'PX', math.ceil(micros / 1000) + SLACK - 900)
end

-- Takes tokens even if the bucket has too few.
local function owe(bucket, tokens)
    local _, own_d = numbers(bucket.spec)
    local most = math.min(bucket.full + math.floor(LONGEST_DEBT / bucket.s) * bucket.n, MOST)
    local promised = last_promise(bucket)
    bucket.missing = math.max(math.min(bucket.missing + tokens * own_d, most), bucket.missing)
    if debt(bucket) > 0 then
        bucket.promised = promised
        bucket.owes = true
    end
end

-- Takes more ticks than the price, up to the given number, ahead of their use. Returns the ticks taken; nothing if it
-- took none and only the price is to be taken.
local function lease(bucket, price, micros, most)
    if bucket.advance > 0 then
        return
    end
    if micros == 0 then -- as that many takes one after the other: promises without a debt change none of them
        local ticks = math.floor(math.min(most, bucket.full - bucket.missing) / price) * price
        if ticks > price then
            bucket.missing = bucket.missing + ticks
            return ticks
        end
        return
    end
    if last_promise(bucket) > 0 then
        return
    end
    local _, d = numbers(bucket.spec)
    local held = math.min((math.floor((bucket.at + micros) / bucket.s) - math.floor(bucket.at / bucket.s)) * bucket.n, MOST)
    local base = math.max(bucket.missing, held)
    local ticks = math.min(most, math.floor((bucket.full - base) / (2 * d)) * d)
    if ticks > price then
        bucket.missing = base + ticks
        bucket.leased = math.max(bucket.leased, held) + ticks
        bucket.lease_end = math.max(bucket.lease_end, bucket.at + micros)
        return ticks
    end
end

local lanes = {}

-- Returns the lane of a pool; nothing if there is none, or no room for it.
local function lane_of(i, s)
    local place = lane_places[i]
    if not place then
        return
    end
    local _, _, tokens, per_token, full, most, longest, wait = unpack('>dddddddd', ARGV[place])
    local key, name = KEYS[place], string.sub(ARGV[place], 65)
    local lane = lanes[key .. name]
    if not lane then
        local moment = (server_time - server_time % s - LANES_EPOCH) * 8 -- no lane gets a token before its pool
        local full_at = tonumber(redis.call('ZSCORE', key, name) or moment) + 0.0
        local ran_ahead = full_at - moment > full + longest + 8 * AHEAD
        lane = {key = key, name = name, now = moment, full = full, ran_ahead = ran_ahead,
            missing = math.min(math.max(full_at - moment, 0), ran_ahead and full or full + longest)}
        if lane.missing == 0 and redis.call('ZCOUNT', key, string.format('(%.0f', moment), '+inf') >= most then
            return
        end
        lanes[key .. name] = lane
    end
    return lane, tokens * per_token, per_token, place, wait, tokens
end

-- The microsecond at which a lane has what it is missing beyond a full one: the beginning of a step of the pool's clock.
local function due(lane, s)
    return math.ceil((lane.now / 8 + LANES_EPOCH + math.ceil((lane.missing - lane.full) / 8)) / s) * s
end

-- Adds a call that waits.
local function wait(bucket, call)
    local place = #bucket.waiting + 1
    while place > 1 and bucket.waiting[place - 1].due > call.due do
        place = place - 1
    end
    table.insert(bucket.waiting, place, call)
end

-- Removes the tokens of a call that waits from those that the pool is to pay, but for those that are kept. Returns the moment
-- that the call waits for; nothing if it doesn't wait.
local function stop_waiting(bucket, step, tokens, kept)
    for i, call in ipairs(bucket.waiting) do
        if call.due / bucket.s == step and call.tokens == tokens + kept then
            call.tokens = kept
            if kept == 0 then
                table.remove(bucket.waiting, i)
            end
            return call.due
        end
    end
end

local function write_lane(lane)
    local key = lane.key
    redis.call('ZADD', key, string.format('%.17g', lane.now + lane.missing), lane.name)
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', lane.now))
    local millis = math.ceil(lane.missing / 8000) + SLACK
    if millis > redis.call('PTTL', key) then
        redis.call('PEXPIRE', key, millis)
    end
end

-- Changes the ticks of one bucket to those of another one, and rounds down.
local function changed_ticks(ticks, per_token, to_per_token)
    local tokens = math.floor(ticks / per_token)
    local rest = ticks - tokens * per_token
    local part = math.floor(rest * to_per_token / per_token)
    if rest * to_per_token > MOST then
        part = math.max(math.floor(rest / per_token * to_per_token) - 1, 0)
    end
    return tokens * to_per_token + part
end

local buckets = {}
local changed = {}

if operation == 'give' then
    for i = count, 1, -1 do -- if two takes are from one bucket, the second is due later
        local argument
        now, argument = time_and_arguments(ARGV[i])
        if not now then
            return other_periods()
        end
        local key, spec = KEYS[i], string.sub(argument, 49)
        local tokens, step, rest, before, kept, begun = unpack('>dddddd', argument)
        local n, d, c, s = numbers(spec)
        local bucket = buckets[key] or read(key, spec, n, s, c * d)
        buckets[key] = bucket
        local lane, lane_price, per_token = lane_of(i, s)
        local waits_until = lane and kept >= 0 and stop_waiting(bucket, step - bucket.corrected_steps, tokens, kept)
        if waits_until then
            changed[key] = bucket
            if due(lane, bucket.s) == waits_until then -- no later call relies on the tokens
                lane.missing = math.max(lane.missing - lane_price, 0)
            end
        elseif kept < 0 then
            owe(bucket, tokens)
            changed[key] = bucket
            if lane then
                lane.missing = math.max(lane.missing, math.min(lane.missing + lane_price, lane.full))
            end
        elseif bucket.missing > 0 then
            local _, own_d, own_c = numbers(bucket.spec)
            local price = math.min(tokens, own_c) * own_d
            local kept_price = math.min(kept, own_c) * own_d
            local promised = last_promise(bucket)
            local back = promised > 0 and 0 or price
            if step >= 0 then
                back = 0
                if bucket.spec == spec and bucket.begun == begun then
                    local due = step - bucket.corrected_steps
                    local behind = promised - ((due - math.floor(bucket.at / s)) * n + rest)
                    if behind >= 0 then
                        local counted = promised == 0 and bucket.returned < MOST / 2
                        local room = counted and math.max(before - bucket.returned, 0) or 0
                        back = math.min(math.max(price + kept_price + room - behind, 0), price)
                    end
                end
            end
            local pulled = math.min(back, bucket.missing - math.min(bucket.missing, bucket.leased))
            if pulled > 0 then
                bucket.missing = bucket.missing - pulled
                if back < price + kept_price and promised > 0 then
                    bucket.promised = promised
                end
                bucket.returned = math.min(bucket.returned + pulled, MOST / 2)
                changed[key] = bucket
                if lane and lane.missing <= lane.full then
                    lane.missing = math.max(lane.missing - changed_ticks(pulled, own_d, per_token), 0)
                end
            end
        end
    end
    for key, bucket in pairs(changed) do
        write(key, bucket)
    end
    for _, lane in pairs(lanes) do
        write_lane(lane)
    end
    return
end

local reply = {}
local all = true
for i = 1, count do
    local key, argument = KEYS[i]
    now, argument = time_and_arguments(ARGV[i])
    if not now then
        return other_periods()
    end
    local n, s, full, price, wait = unpack('>ddddd', argument)
    local spec, micros, most = string.sub(argument, operation == 'lease' and 57 or 41), 0, 0
    if operation == 'lease' then
        micros, most = unpack('>dd', argument, 41)
    end
    local seen = buckets[key]
    local bucket = seen or read(key, spec, n, s, full)
    buckets[key] = bucket
    local old_wait
    if bucket.spec ~= spec then
        local _, old_d, old_c = numbers(bucket.spec)
        local tokens = price / (full / string.match(spec, '/(%d+)/%d+$'))
        local short = bucket.missing + tokens * old_d - bucket.full
        old_wait = tokens > old_c and math.huge or short <= bucket.advance and 0 or micros_until(bucket, short)
        convert(bucket, spec)
    elseif bucket.ran_ahead and not seen then
        bucket.anyway = {missing = bucket.missing, leased = bucket.leased, lease_end = bucket.lease_end}
    end
    local limit = full
    if wait > 0 then
        limit = math.min(full + math.floor((wait + bucket.at % s) / s) * n, MOST)
    end
    local missing = bucket.missing
    local after = missing + price
    local lane, lane_price, _, place, lane_wait, tokens = lane_of(i, s)
    if wait < 0 then
        limit = full + wait
    end
    local waits_until
    if lane then
        local short = lane.missing + lane_price - lane.full
        local serves = after > limit and after <= full and short <= 0
        local waits = after > limit and short > 0 and short <= lane_wait and lane_price <= lane.full
            and debt(bucket) == 0 and not lane.ran_ahead
        if serves or waits then
            lane.missing = lane.missing + lane_price
            lane.changed = true
        end
        if serves then
            limit = full
        elseif waits then
            waits_until = due(lane, s)
        end
        reply[place] = pack('>dd', lane.now, (serves or waits) and lane.missing or -lane.missing - 1)
    elseif lane_places[i] then
        reply[lane_places[i]] = ''
    end
    local leased = most > price and lease(bucket, price, micros, most)
    if waits_until then
        bucket.ahead = bucket.ahead or {}
        table.insert(bucket.ahead, {due = waits_until, tokens = tokens})
        missing = math.max(missing - (waits_until - bucket.at + bucket.at % s) / s * n, 0)
        reply[i] = pack('>dddd', waits_until, math.min(missing + price, full), bucket.begun, bucket.returned - bucket.leased)
    elseif leased then
        reply[i] = pack('>ddddd', now, bucket.missing, bucket.begun, bucket.returned - bucket.leased, leased)
    elseif after <= limit or wait >= 0 and after <= full + bucket.advance and price <= full then
        bucket.missing = math.min(after, MOST)
        if after <= full + bucket.advance then
            after = math.max(missing - bucket.advance, 0) + price
        end
        reply[i] = pack('>ddd', now, after, bucket.begun)
        if bucket.returned ~= bucket.leased then
            reply[i] = reply[i] .. pack('>d', bucket.returned - bucket.leased)
        end
    else
        all = false
        if old_wait and not seen and price <= full and micros_until(bucket, missing + price - full) < old_wait then
            bucket.anyway = {missing = missing, leased = bucket.leased, lease_end = bucket.lease_end}
        end
        if price > full and missing <= full + bucket.advance then
            missing = math.max(missing - bucket.advance, 0)
        end
        reply[i] = pack('>dd', now, -missing - 1)
    end
    if bucket.at > now and string.byte(reply[i], 9) < 128 then
        reply[i] = string.sub(reply[i] .. pack('>dd', 0, 0), 1, 40) .. pack('>d', bucket.at)
    end
end
if operation ~= 'look' then
    for key, bucket in pairs(buckets) do
        if all then
            bucket.owes = false
            for _, call in ipairs(bucket.ahead or {}) do
                wait(bucket, call)
            end
            write(key, bucket)
        elseif bucket.anyway then
            bucket.missing, bucket.leased, bucket.lease_end = bucket.anyway.missing, bucket.anyway.leased, bucket.anyway.lease_end
            write(key, bucket)
        end
    end
    for _, lane in pairs(lanes) do
        if lane.ran_ahead or all and lane.changed then -- a lane that ran ahead is empty, and serves nothing
            write_lane(lane)
        end
    end
end
return reply
