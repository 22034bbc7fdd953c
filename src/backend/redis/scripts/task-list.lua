--[[
Task list: a page of the tasks, newest first. Follows task-shown.lua. Changes nothing.
KEYS  1 task order (sorted set: number -> id), 2 tasks, 3 task texts, 4 task counts (hashes), 5 task queues (sorted set, by text)
ARGV  1 number before which, as a bound of a range; 2 how many at most; 3 bytes of a page, about
Result  1 when there are more, else 0; then id, record and texts per task
Atomic so that each page is one moment.
]]
local call, limit, pageBytes, step = redis.call, tonumber(ARGV[2]), tonumber(ARGV[3]), 50
local ids = call("ZREVRANGEBYSCORE", KEYS[1], ARGV[1], "-inf", "LIMIT", 0, limit + 1)
local result, bytes, last = { #ids > limit and 1 or 0 }, 0, math.min(#ids, limit)
for from = 1, last, step do
  if bytes >= pageBytes then
    result[1] = 1
    break
  end
  local to = math.min(from + step - 1, last)
  local records, texts = call("HMGET", KEYS[2], unpack(ids, from, to)), call("HMGET", KEYS[3], unpack(ids, from, to))
  for index = from, to do
    local record, text = records[index - from + 1] or "", texts[index - from + 1] or ""
    local n = #result
    result[n + 1], result[n + 2], result[n + 3] = ids[index], shownTask(ids[index], record, KEYS[4], KEYS[5]), text
    bytes = bytes + #text
  end
end
return result
