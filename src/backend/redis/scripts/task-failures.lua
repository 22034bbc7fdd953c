--[[
Task failures: which dead letters a task has, in the order they came. Changes nothing.
KEYS  1 tasks (hash), 2 task failures (sorted set, by text)
ARGV  1 id of the task; 2 failure after which (6 bytes); 3 how many at most
Result  nothing when there is no such task; else entries (tasks.lua)
Atomic because the entries are those of this very task, not of one made later with its id.
]]
local record = redis.call("HGET", KEYS[1], ARGV[1])
if not record then return false end
local number = string.sub(record, 8, 13)
local from = "[" .. number .. ARGV[2] .. string.rep("\255", 13)
return redis.call("ZRANGEBYLEX", KEYS[2], from, "[" .. number .. string.rep("\255", 19), "LIMIT", 0, ARGV[3])
