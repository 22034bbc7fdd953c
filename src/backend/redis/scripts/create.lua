--[[
Create: makes a queue of a name, with a life number that no queue ever had. Follows frame.lua.
KEYS  11 meta (hash), 12 queues (hash: name -> life), 13 names (sorted set, by name), 14 queue (string), the record of the new life
ARGV  4 name, 5 life, 6 deliveries at most
Result  0 it existed or 1 it was made (1 byte), life (6). CHANGED: another store has this namespace now.
Atomic because two who create the same name must get the same queue.
]]
if stored then return stored end
if call("HGET", KEYS[11], "store") ~= ARGV[2] then return redis.error_reply("CHANGED another store has this namespace now") end
local known = call("HGET", KEYS[12], ARGV[4])
if known then return "\0" .. pack(">I6", tonumber(known)) end
call("ZCARD", KEYS[13])
local good, fault = pcall(begin)
if not good then return redis.error_reply(fault) end
if full then return redis.error_reply("OOM the memory of the server is full") end
readClock()
-- The record that queue.lua tells of: all its counts are zero.
local life, maxDeliveries = tonumber(ARGV[5]), tonumber(ARGV[6])
call("SET", KEYS[14], pack(">Bc8I6", 1, ARGV[2], life) .. string.rep("\0", 68) .. pack(">I4I6", maxDeliveries, nowMs) .. ARGV[4])
call("HSET", KEYS[12], ARGV[4], ARGV[5])
call("ZADD", KEYS[13], "0", ARGV[4])
call("HINCRBY", KEYS[11], "change", 1)
changed = true
local answer = "\1" .. pack(">I6", life)
local fault = finish(answer, ARGV[4])
if fault then return fault end
return answer
