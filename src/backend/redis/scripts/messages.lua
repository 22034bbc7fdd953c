--[[
Messages: a page of the unacked messages of a queue, in its order. Changes nothing.
KEYS  1 record (string), 2 pending (list), 3 bodies, 4 states (hashes), 5 returned, 6 later, 7 held (sorted sets by place)
ARGV  1 id of the store; 2 place after which, or empty (6 bytes); 3 how many at most; 4 bytes of a page, about
Result  nothing when the queue is gone; else whether there are more (1 byte), per message: 1 if in processing (1), delivery count (4),
        length (4) and entry
Atomic so that each page is one moment.
]]
local call, pack, read, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte
local record = call("GET", KEYS[1])
if not record or sub(record, 2, 9) ~= ARGV[1] then return false end
local lastSequence, largest = read(">I6", record, 16), read(">I6", record, 58)
local after, limit, pageBytes = ARGV[2] == "" and 0 or read(">I6", ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local function sequenceOf(entry)
  if #entry < 14 or byte(entry) ~= 1 then return nil end
  local sequence = read(">I6", entry, 2)
  return sequence > 0 and sequence <= lastSequence and sequence or nil
end

-- Messages outside the list, by place.
local outside, n = {}, 0
for key = 5, 7 do
  -- What is held is named by place and token: the end of all tokens comes after them.
  local from = ARGV[2] == "" and "-" or "(" .. ARGV[2] .. (key == 7 and string.rep("\255", 6) or "")
  for _, member in ipairs(call("ZRANGEBYLEX", KEYS[key], from, "+", "LIMIT", 0, limit + 1)) do
    n = n + 1
    outside[n] = { read(">I6", member), sub(member, 1, 6), key == 7 and 1 or 0 }
  end
end
table.sort(outside, function(left, right) return left[1] < right[1] end)

-- Index in the list of the first message after `after`. Sequences in it ascend, with gaps only where messages were delayed, so a
-- difference of sequences is a good guess; halving finds the rest.
local length = call("LLEN", KEYS[2])
local function isAfter(index)
  for at = index, length - 1 do
    local sequence = sequenceOf(call("LINDEX", KEYS[2], at))
    if sequence then return sequence > after end
  end
  return true
end
local function firstAfter()
  if after == 0 or length == 0 or isAfter(0) then return 0 end
  local low, high = 0, length
  local guess = after - (sequenceOf(call("LINDEX", KEYS[2], 0)) or after) + 1
  if guess >= 1 and guess < high then
    if isAfter(guess) then high = guess else low = guess end
    if low == 0 and not isAfter(guess - 1) then return guess end
  end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if isAfter(middle) then high = middle else low = middle end
  end
  return high
end
local nextIndex = firstAfter()
local chunk, at = {}, 1
local size = math.max(1, math.min(limit + 1, math.floor(pageBytes / (largest + 64))))
local function headOfList()
  while true do
    if at > #chunk then
      chunk, at = call("LRANGE", KEYS[2], nextIndex, nextIndex + size - 1), 1
      nextIndex = nextIndex + #chunk
      if #chunk == 0 then return nil end
    end
    local sequence = sequenceOf(chunk[at])
    if sequence then return sequence end
    at = at + 1
  end
end

local pieces, count, bytes, index = { "\0" }, 0, 0, 1
while true do
  local head, other = headOfList(), outside[index]
  if not head and not other then break end
  if count == limit or bytes >= pageBytes then
    pieces[1] = "\1"
    break
  end
  local state, deliveries, entry
  if other and (not head or other[1] < head) then
    entry = call("HGET", KEYS[3], other[2])
    state = call("HGET", KEYS[4], other[2])
    -- What is held without a state was delivered once.
    deliveries = state and #state >= 5 and read(">I4", state) % 2147483648 or other[3]
    state = string.char(other[3])
    index = index + 1
  else
    entry, state, deliveries = chunk[at], "\0", 0
    at = at + 1
  end
  if entry and sequenceOf(entry) then
    count, bytes = count + 1, bytes + #entry
    pieces[#pieces + 1] = state .. pack(">I4I4", deliveries, #entry)
    pieces[#pieces + 1] = entry
  end
end
return table.concat(pieces)
