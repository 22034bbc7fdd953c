--[[
Plain: the first part of the scripts for what happens most, on one queue, with nothing out of the ordinary. They do what the transitions of
the same name do, in the same form, but without a single function of their own, since making those costs more than the work. Where anything
is unusual (a repeat, a queue that is gone, something due, a full memory, records of others) they answer with an empty text before they write,
and the same request is sent again to the script that knows everything.

KEYS  1 session, 2 record of the queue; further keys as each says
ARGV  1 header, 2 id of the store, 3 channel: as frame.lua; 4 body of one operation
]]
local call, pack, read, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte
local header, body = ARGV[1], ARGV[4]
local last, record = call("HGET", KEYS[1], sub(header, 1, 1)), call("GET", KEYS[2])
if not record or #record < 94 or byte(record) ~= 1 or sub(record, 2, 9) ~= ARGV[2] then return "" end
if last and (#last < 7 or read(">I6", last) >= read(">I6", header, 2)) then return "" end
local kept, whole
