-- Assigns replies to requests. A link that is not certain is not made.
--
-- Where replies come in the order of requests, the decoder has assigned them: m.asks is the new request, m.answers that of
-- a reply. Other replies are assigned here, by the types that may answer a request. c.waiting has the requests that wait,
-- and "silent" entries for messages without a reply, to which the server may still send an error.

local ANSWERS = {} -- by type: the types that answer it
for _, t in ipairs(P.types) do
	ANSWERS[t] = {}
	for _, i in ipairs(t.answers or {}) do ANSWERS[t][P.types[i]] = true end
end

local function answeredBy(request, t)
	return ANSWERS[request.type][t] or t.does == "assign" and request.type.does == "ask"
end

-- sent records a message of the connecting end.
local function sent(c, m)
	local t, waiting = m.type, c.waiting
	if t and t.does == "sleep" then c.asleep = true end
	if m.err or not t or not t.answers then
		if #waiting == 0 or not waiting[#waiting].silent then table.insert(waiting, {silent = true}) end
		return
	end
	m.asks = {type = t}
	for _, r in ipairs(waiting) do
		m.asks.unsure = m.asks.unsure or r.unsure
	end
	table.insert(waiting, m.asks)
end

-- refused handles an error, which may answer any message.
local function refused(c, m)
	local waiting = c.waiting
	if #waiting == 1 and not waiting[1].silent or #waiting > 1 and not waiting[1].silent and not waiting[1].type.waits then
		local r = table.remove(waiting, 1)
		if not r.unsure then m.answers = r end
		return
	end
	for _, r in ipairs(waiting) do r.unsure = true end
end

-- received records a message of the server.
local function received(c, m)
	local t, waiting = m.type, c.waiting
	if m.err or not t then -- it may answer any request
		for _, r in ipairs(waiting) do r.unsure = true end
		return
	end
	if t.does == "refuse" then return refused(c, m) end
	local asleep = c.asleep
	if t.does == "wake" then c.asleep = false end
	local found, several
	for i, r in ipairs(waiting) do
		if not r.silent and answeredBy(r, t) then
			several = found ~= nil
			found = found or i
		end
	end
	if not found then return end
	local r = waiting[found]
	if t.does == "wake" and asleep or several and r.type.waits then
		for _, other in ipairs(waiting) do other.unsure = true end
		return
	end
	table.remove(waiting, found)
	while waiting[1] and waiting[1].silent and found > 1 do
		table.remove(waiting, 1)
		found = found - 1
	end
	if not r.unsure then m.answers = r end
end

local function assign(c, side, m)
	if m.ordered then return end
	if side == 1 then sent(c, m) else received(c, m) end
end
