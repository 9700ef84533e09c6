--[[
Random histories of bucket.lua in an interpreter of Lua, with a stub of Redis. Runs on Lua 5.1 to 5.4, and prints the same lines
on each if the script does the same on each.

Arguments: the file of the script, a file with the numbers n, d, c and s of a spec on each line, the number of runs, and the
number of steps of a run. The number of a run is its seed.

Each line is a step: the run, the step, what was done, the keys, the arguments, the time (empty if the script reads the clock),
the reply, and the values of both keys afterwards; all texts in hexadecimal digits.
]]

local script_file, spec_file, runs, steps = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
local KEY_NAMES = {'user0', 'user1'}
local START = 1795000000123456

-- Numbers of eight bytes, the highest first. Lua 5.1 has no function for that.
local function pack_double(x)
    if string.pack then
        return string.pack('>d', x)
    end
    local sign = 0
    if x < 0 or (x == 0 and 1 / x < 0) then
        sign, x = 128, -x
    end
    local mantissa, exponent = math.frexp(x)
    if x == 0 then
        exponent, mantissa = 0, 0
    elseif x == math.huge then
        exponent, mantissa = 2047, 0
    else
        exponent, mantissa = exponent + 1022, (mantissa * 2 - 1) * 2 ^ 52
    end
    local bytes = {}
    for i = 8, 3, -1 do
        bytes[i] = mantissa % 256
        mantissa = math.floor(mantissa / 256)
    end
    bytes[2] = mantissa + exponent % 16 * 16
    bytes[1] = sign + math.floor(exponent / 16)
    return string.char(unpack(bytes))
end

local function unpack_double(text, from)
    if string.unpack then
        return (string.unpack('>d', text, from))
    end
    local bytes = {string.byte(text, from, from + 7)}
    local exponent, mantissa = bytes[1] % 128 * 16 + math.floor(bytes[2] / 16), bytes[2] % 16
    for i = 3, 8 do
        mantissa = mantissa * 256 + bytes[i]
    end
    local number = exponent == 0 and math.ldexp(mantissa, -1074)
        or exponent == 2047 and (mantissa == 0 and math.huge or 0 / 0)
        or math.ldexp(mantissa / 2 ^ 52 + 1, exponent - 1023)
    return bytes[1] >= 128 and -number or number
end

struct = {
    pack = function(format, ...)
        local texts = {}
        local numbers = string.match(format, '^>(d*)')
        for i = 1, #numbers do
            texts[i] = pack_double((select(i, ...)))
        end
        if format == '>' .. numbers .. 'c0' then
            texts[#texts + 1] = select(#texts + 1, ...)
        end
        return table.concat(texts)
    end,
    unpack = function(format, text, from)
        from = from or 1
        if #text < from - 1 + 8 * (#format - 1) then
            error('data string too short')
        end
        local numbers = {}
        for i = 1, #format - 1 do
            numbers[i] = unpack_double(text, from + 8 * (i - 1))
        end
        return (table.unpack or unpack)(numbers)
    end,
}

-- The numbers of Park and Miller, whose products are exact on each Lua.
local state
local function below(limit)
    state = state * 16807 % 2147483647
    return math.floor(state / 2147483647 * limit)
end

-- A number of any size up to the limit.
local function up_to(limit)
    return math.max(math.floor(limit / 2 ^ below(54)) - below(3), 0)
end

local values, ends, now, by_calendar, early

-- Notes a key that would expire before its bucket is full, if its value has no more than the spec behind the numbers. The time of a
-- calendar is another one.
local function check_end(key)
    local n, s = string.match(values[key], '^(%d+)/%d+/%d+/(%d+)$', 25)
    local at, missing = struct.unpack('>dd', values[key])
    if n and not by_calendar and missing < 2 ^ 50 and ends[key] < at + math.ceil(missing / n) * s - at % s then
        early = key
    end
end

redis = {
    call = function(command, key, value, px, millis)
        if command == 'TIME' then
            return {string.format('%.0f', math.floor(now / 1000000)), string.format('%.0f', now % 1000000)}
        elseif command == 'GET' then
            return values[key] or false
        elseif command == 'DEL' then
            values[key] = nil
        elseif command == 'SET' then
            -- Redis converts a number in this way. A server on Lua 5.3 or later adds '.0' to a float.
            if px == 'KEEPTTL' then
                values[key] = value
                check_end(key)
                return {ok = 'OK'}
            elseif px ~= 'PX' or not string.match(tostring(millis), '^%d+$') then
                error('not an integer: ' .. tostring(millis))
            end
            values[key], ends[key] = value, now + millis * 1000
            check_end(key)
            return {ok = 'OK'}
        else
            error(command)
        end
    end,
}
redis.pcall = redis.call -- no command of these histories fails

local specs = {}
for line in io.lines(spec_file) do
    local n, d, c, s = string.match(line, '(%d+) (%d+) (%d+) (%d+)')
    specs[#specs + 1] = {n = tonumber(n), d = tonumber(d), c = tonumber(c), s = tonumber(s),
        name = n .. '/' .. d .. '/' .. c .. '/' .. s}
end

local function hex(text)
    return (string.gsub(text, '.', function(c)
        return string.format('%02x', string.byte(c))
    end))
end

local file = assert(io.open(script_file))
local run_script = assert((loadstring or load)(file:read('*a')))
file:close()

local function hexes(list)
    local texts = {}
    for i = 1, #list do
        texts[i] = hex(list[i])
    end
    return table.concat(texts, ',')
end

local function print_step(run, step, done, keys, arguments, time, reply)
    assert(not early, early)
    print(string.format('%d %d %s %s %s %s %s %s %s', run, step, done, table.concat(keys, ','), arguments, time, reply,
        hex(values.user0 or ''), hex(values.user1 or '')))
end

-- A value that another version or another application could have written. Its debt ends before the microseconds of the clock are
-- more than a double counts: later moments are rounded, and Lua 5.1 computes the remainder of a rounded number differently.
local function strange_value(spec)
    local digits = {'0', '1', '9007199254740993', '9223372036854775807', '9223372036854775808', '99999999999999999999'}
    local function number()
        return digits[1 + below(#digits)]
    end
    local kind = below(5)
    local numbers = struct.pack('>ddd', now - up_to(2 ^ 40), up_to(2 ^ 51 * math.min(spec.n / spec.s, 1)),
        now - up_to(2 ^ 40) - (below(20) == 0 and 0.5 or 0))
    if kind == 0 then
        return numbers .. number() .. '/' .. number() .. '/' .. number() .. '/' .. number()
    elseif kind == 1 then
        return numbers .. spec.name .. ' ' .. number()
    elseif kind == 2 then
        return string.sub(numbers, 1, 16) .. struct.pack('>dd', -1 - up_to(2 ^ 54), below(3) * 2 ^ below(60)) .. spec.name
            .. ' +' .. number() .. ' ~' .. number()
    elseif kind == 3 then
        return struct.pack('>ddd', now + up_to(2 ^ 44), 0 - up_to(2 ^ 30), below(2) * 2 ^ 60) .. spec.name
    end
    return string.sub(numbers, 1, below(25)) .. string.sub(spec.name, 1, below(4))
end

-- Arguments for a bucket with calendar refill. Each period of the calendar is shorter than the period of the spec, and the
-- caller may not know the time.
local function with_calendar(spec, arguments)
    if not by_calendar then
        return arguments
    end
    local length = math.max(math.floor(spec.s * 0.9), 1)
    local known = now + (below(10) == 0 and (below(7) - 3) * length or 0)
    local count = math.floor(known / length) - 1
    return struct.pack('>ddddddd', -1, spec.s, count, count * length, (count + 1) * length, (count + 2) * length,
        (count + 3) * length) .. arguments
end

-- Another spec with the period of a spec with batches.
local function of_same_period(spec)
    local other = {n = (1 + below(50)) * spec.d, d = spec.d, c = 1 + below(100), s = spec.s}
    other.name = string.format('%.0f/%.0f/%.0f/%.0f', other.n, other.d, other.c, other.s)
    return other
end

local function take_arguments(spec, cost, wait, lease)
    return struct.pack('>ddddd', spec.n, spec.s, spec.c * spec.d, cost > spec.c and 8e15 + 1 or cost * spec.d, wait)
        .. (lease or '') .. spec.name
end

-- Gives the tokens of a take back, or a part of them, or owes more.
local function give_arguments(spec, cost, step, rest, before, begun)
    local kind = below(4)
    if kind == 0 then
        return struct.pack('>dddddd', up_to(10 ^ 12), -1, 0, 0, -1, 0) .. spec.name
    end
    local kept = kind == 1 and below(cost + 1) or 0
    return struct.pack('>dddddd', cost - kept, step, rest, before, kept, begun) .. spec.name
end

for run = 1, runs do
    state = run * 7919 % 2147483646 + 1
    for _ = 1, 10 do
        below(1)
    end
    values, ends, now = {}, {}, START + up_to(2 ^ 40)
    local reads_clock, expires = run % 4 == 0, run % 2 == 0
    local used, taken = {}, {}
    by_calendar = run % 3 == 0
    repeat
        used[1] = specs[1 + below(#specs)]
    until not by_calendar or used[1].s > 1000 and used[1].n % used[1].d == 0
    for i = 2, 1 + below(3) do
        used[i] = by_calendar and of_same_period(used[1]) or specs[1 + below(#specs)]
    end
    for step = 1, steps do
        local spec = used[1 + below(#used)]
        local token = spec.d / spec.n * spec.s
        local kind = below(60)
        if kind < 20 then
            now = now + below(2 * token + 2)
        elseif kind == 20 then
            now = now + math.floor(math.min(spec.c * token, 2 ^ 45)) + below(3)
        elseif kind == 21 then
            now = now - below(2 ^ (5 + below(28)))
        end
        for _, key in ipairs(KEY_NAMES) do
            if expires and values[key] and ends[key] <= now then
                values[key] = nil
            end
        end
        if below(100) == 0 then
            local key = KEY_NAMES[1 + below(2)]
            values[key], ends[key] = strange_value(spec), math.huge
            print_step(run, step, 'set', {key}, hex(values[key]), '', '')
        else
            local operation, given = 'take', nil
            KEYS, ARGV = {}, {}
            local costs = {}
            if below(3) == 0 and #taken > 0 then
                operation = 'give'
                given = table.remove(taken, 1 + below(#taken))
                KEYS, ARGV = given.keys, given.arguments
            else
                local kind = below(8)
                operation = kind == 0 and 'look' or kind < 3 and 'lease' or 'take'
                for i = 1, below(2) == 0 and 1 or 1 + below(3) do
                    KEYS[i] = KEY_NAMES[1 + below(2)]
                    costs[i] = below(2) == 0 and 1 or 1 + up_to(spec.c)
                    local wait = below(2) == 0 and 0 or up_to(10 * token + 1)
                    local lease = operation == 'lease'
                        and struct.pack('>dd', below(2) == 0 and 0 or up_to(10 * token + 1), up_to(2 * spec.c) * spec.d)
                    ARGV[i] = with_calendar(spec, take_arguments(spec, costs[i], lease and 0 or wait, lease))
                end
            end
            local keys, arguments = KEYS, hexes(ARGV)
            ARGV[#KEYS + 1] = operation
            local time = ''
            if not reads_clock then
                time = string.format('%.0f', now)
                ARGV[#KEYS + 2] = time
            end
            local done, reply = pcall(run_script)
            if type(reply) == 'string' and done then
                reply = {reply}
            end
            if not done then
                print_step(run, step, operation, keys, arguments, time,
                    'error:' .. hex(string.match(reply, 'BADVALUE.*') or string.gsub(reply, '^.-: ', '')))
            else
                print_step(run, step, operation, keys, arguments, time, reply and hexes(reply) or '')
            end
            if done and operation == 'take' and #reply[1] > 8 then -- otherwise the periods are others
                local given_back = {keys = keys, arguments = {}}
                for i = 1, #keys do
                    local time, missing = struct.unpack('>dd', reply[i])
                    if missing < 0 then
                        given_back = nil
                        break
                    end
                    local begun = struct.unpack('>d', reply[i], 17)
                    local rest = string.sub(reply[i], 25)
                    local returned = #rest == 8 and struct.unpack('>d', rest) or 0
                    local full = spec.c * spec.d
                    local due = math.max(missing - full, 0)
                    local at = math.floor(time / spec.s) + math.floor(due / spec.n)
                    local price = costs[i] * spec.d
                    given_back.arguments[i] = with_calendar(spec, below(4) == 0 and give_arguments(spec, costs[i], -1, 0, 0, 0)
                        or give_arguments(spec, costs[i], at, due % spec.n, math.min(missing, full) - price + returned, begun))
                end
                taken[#taken + 1] = given_back
            end
        end
    end
end
