"""The Lua script for the accounts of budgets, which each process calls with its changes."""

from __future__ import annotations

ACCOUNTS = """
-- KEYS: what is reserved, by account; when each process was last heard of; what begins the name of its hash.
-- That has its calls, as call:ID; those that were charged as interrupted, as counted:ID; and the last batch, as done.
-- And what begins the name of a person's answers of the last minute: of each its process and number, and when it was.
local reserved, heard, prefix, answers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local batch = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local own, now = prefix .. batch.name, tonumber(time[1])
local milliseconds = now * 1000 + math.floor(time[2] / 1000)

local function charge(amounts, periods, is_all)
  for _, period in ipairs(periods) do
    for account, amount in pairs(amounts) do
      if is_all then amount = math.max(amount - tonumber(redis.call('HGET', period[1], account) or 0), 0) end
      redis.call('HINCRBY', period[1], account, amount)
    end
    if redis.call('TTL', period[1]) < period[2] then redis.call('EXPIRE', period[1], period[2]) end
  end
end

local function give_back(hash, id)
  local stored = redis.call('HGET', hash, 'call:' .. id)
  if not stored then return nil end
  redis.call('HDEL', hash, 'call:' .. id)
  local call = cjson.decode(stored)
  for account, amount in pairs(call.aside) do
    if redis.call('HINCRBY', reserved, account, -amount) <= 0 then redis.call('HDEL', reserved, account) end
  end
  return call
end

local refused = {} -- by the ID of a call: the accounts that have no room for it

local function has_room(limits, id)
  local lacking = {}
  for _, limit in ipairs(limits) do
    local period, account, more, amount = limit[1], limit[2], limit[3], limit[4]
    local used = tonumber(redis.call('HGET', period, account) or 0)
    local others = tonumber(redis.call('HGET', reserved, account) or 0)
    if used >= amount or (others > 0 and used + others + more > amount) then lacking[#lacking + 1] = account end
  end
  refused[id] = lacking
  return #lacking == 0
end

local function leave(name)
  local hash = prefix .. name
  for _, field in ipairs(redis.call('HKEYS', hash)) do
    if string.sub(field, 1, 5) == 'call:' then
      local id = string.sub(field, 6)
      local call = give_back(hash, id)
      charge(call.charge, call.periods)
      redis.call('HSET', hash, 'counted:' .. id, 1)
    end
  end
  redis.call('ZREM', heard, name)
  redis.call('EXPIRE', hash, 172800)
end

local function leave_gone(seconds)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', heard, '-inf', now - seconds)) do leave(name) end
end

local function is_own(answer)
  return string.sub(answer, 1, #batch.name + 1) == batch.name .. ':'
end

local function count(answer, key)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', milliseconds - 60000)
  if answer then
    redis.call('ZADD', key, milliseconds, batch.name .. ':' .. answer)
    redis.call('EXPIRE', key, 60)
    return
  end
  for _, each in ipairs(redis.call('ZREVRANGE', key, 0, -1)) do
    if is_own(each) then return redis.call('ZREM', key, each) end
  end
end

local function apply(change)
  if change.person then return count(change.answer, answers .. change.person) end
  if change.call then
    if has_room(change.limits, change.id) then
      redis.call('HSET', own, 'call:' .. change.id, change.call)
      for account, amount in pairs(cjson.decode(change.call).aside) do
        redis.call('HINCRBY', reserved, account, amount)
      end
    end
    return
  end
  if change.id then
    give_back(own, change.id)
    if redis.call('HDEL', own, 'counted:' .. change.id) == 1 then return end
  end
  if change.gone then leave_gone(change.gone) end
  charge(change.charge, change.periods, change.is_all)
end

local done = tonumber(redis.call('HGET', own, 'done') or '')
if not done and not batch.is_first then return {} end -- Redis has lost its data
if not done or done < batch.number then
  redis.call('HSET', own, 'done', batch.number)
  redis.call('PERSIST', own)
  redis.call('ZADD', heard, now, batch.name)
  for _, change in ipairs(batch.changes) do apply(change) end
  if batch.gone then leave_gone(batch.gone) end
  if batch.leaves then leave(batch.name) end
end

local granted, totals = {}, {}
for _, change in ipairs(batch.changes) do
  local is_granted = change.id and redis.call('HEXISTS', own, 'call:' .. change.id) == 1
  granted[#granted + 1] = is_granted and 1 or refused[change.id or ''] or {}
end
for _, asked in ipairs(batch.asked) do
  totals[#totals + 1] = redis.call('HMGET', asked[1], unpack(asked[2]))
end
local ages = {}
for _, person in ipairs(batch.people) do
  local others, found = {}, redis.call('ZRANGE', answers .. person, 0, -1, 'WITHSCORES')
  for at = 1, #found, 2 do
    if not is_own(found[at]) then others[#others + 1] = milliseconds - found[at + 1] end
  end
  ages[#ages + 1] = others
end
return {granted, totals, ages}
"""
