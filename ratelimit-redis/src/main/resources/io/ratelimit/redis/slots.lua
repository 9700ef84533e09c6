--[[
Sets the registers of one process for the calls in flight of keys. Before this text the function bucket is defined, which takes
tokens as bucket.lua does.

The value of a key is a text with a register for each process: "process number slots usable deadline;". The deadline is in
microseconds of the server's clock. How many slots a process may use, and why their sum never exceeds the limit, is described at
io.ratelimit.remote.inflight.RegisterStore.

If the clock is set back, a register that nobody renews counts for its time to live once more, and not until the clock has caught
up: its deadline becomes that of a new one. No process uses its slots for so long after it was set.

With tokens all or nothing is done. If one claim gets no slot for one more call than run, no tokens are taken. If tokens are
short, no register is set.

KEYS     the keys of the registers, and then those of bucket.lua
ARGV     the number of registers, and the number of charges; for each register the process, as hexadecimal digits, the number of
         its claim, the calls that run there, the slots that it wants, the limit, and the time to live in milliseconds; then the
         arguments of bucket.lua
Returns the reply of bucket.lua, if there are charges, and then for each register that was set a text of two doubles: the usable
slots of the process plus 2, or 1 if a later claim was there before; and the slots of all others.
]]

local count, charges = tonumber(ARGV[1]), tonumber(ARGV[2])
local keys, arguments, slack = {}, {}, 1000
for i = count + 1, #KEYS do
    keys[i - count] = KEYS[i]
end
for i = 3 + 6 * count, #ARGV do
    arguments[i - 2 - 6 * count] = ARGV[i]
end
local now = tonumber(arguments[#keys + 2])
if now then
    slack = 600000 -- the time of a test may stand still while the server's clock runs
else
    local time = redis.call('TIME')
    now = time[1] * 1000000.0 + time[2]
end

local values, replies, free = {}, {}, true
for i = 1, count do
    local own, place = ARGV[6 * i - 3], 6 * i - 3
    local number, have, want, limit = tonumber(ARGV[place + 1]), tonumber(ARGV[place + 2]), tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
    local registers, others, before, later, latest = {}, 0, 0, false, now + ARGV[place + 5] * 1000
    for process, claim, slots, usable, deadline in string.gmatch(redis.call('GET', KEYS[i]) or '', '(%x+) (%d+) (%d+) (%d+) (%d+);') do
        if tonumber(deadline) > now then
            if process ~= own then
                others = others + tonumber(slots)
                deadline = tonumber(deadline) > latest and string.format('%.0f', latest) or deadline
                registers[#registers + 1] = process .. ' ' .. claim .. ' ' .. slots .. ' ' .. usable .. ' ' .. deadline .. ';'
            elseif number <= tonumber(claim) then
                later = true
            else
                before = tonumber(usable)
            end
        end
    end
    if later then
        replies[i] = {-1, 0}
        free = false
    else
        local usable = math.max(0, math.min(want, math.max(limit - others, before)))
        registers[#registers + 1] = string.format(
            '%s %.0f %.0f %.0f %.0f;', own, number, math.max(have, usable), usable, latest)
        values[i] = table.concat(registers)
        replies[i] = {usable, others}
        free = free and have < math.min(usable, limit - others)
    end
end

local tokens = {}
if free and charges > 0 then
    tokens = bucket(keys, arguments)
    if type(tokens) == 'string' then
        tokens = {tokens}
        for i = 2, #keys do
            tokens[i] = '' -- no lane was needed, and nil would end the reply
        end
    end
    for i = 1, charges do
        if (string.byte(tokens[i] or '', 9) or 255) >= 128 then -- below zero: tokens are short; or there are none
            return tokens
        end
    end
else
    for i = 1, #keys do
        tokens[i] = ''
    end
end

for i = 1, count do
    if values[i] then
        redis.call('SET', KEYS[i], values[i], 'PX', ARGV[6 * i + 2] + slack)
    end
end
for i = 1, count do
    tokens[#keys + i] = struct.pack('>dd', replies[i][1] + 2, replies[i][2])
end
return tokens
