-- Matches replies with requests, where the order of the requests decides. c.pending has the requests that wait.

local function is(word, text) return word and word:lower() == text end

-- asked adds a request. words are all its words.
local function asked(c, m, types, words)
	local effect = words[1] and #words[1] <= V.longest and V.effects[words[1]:lower()] or {}
	local request = {types = types, effect = effect}
	local muted = c.muted or c.silent > 0
	c.silent = math.max(0, c.silent - 1)
	if effect.counts then
		request.left = #words - 1
		if #words == 1 and effect.ends then request.left = -1 end
	elseif effect.endless then
		c.loose = true
	elseif effect.resets then
		c.muted, c.silent, muted = false, 0, false
	elseif effect.mode and #words == 3 and is(words[2], "reply") then
		if is(words[3], "on") then
			c.muted, muted = false, false
		elseif is(words[3], "off") then
			c.muted, c.loose, muted = true, true, true
		elseif is(words[3], "skip") and not c.muted then
			c.silent, c.loose, muted = 1, true, true
		end
	end
	if not muted then
		m.asks = request
		table.insert(c.pending, request)
	end
end

local function answered(c, m)
	local r = table.remove(c.pending, 1)
	if r and r.effect.resets then c.subscribed = {} end
	if r and not c.loose then m.answers = r end
end

-- confirmed handles a push whose first word is the command that it confirms. n is the number of subscriptions.
local function confirmed(c, m, effect, n)
	local subs, left = c.subscribed, n
	if effect.counts == "shards" then
		subs.shards = n
	else
		local other = effect.counts == "channels" and "patterns" or "channels"
		left = math.max(0, n - (subs[other] or 0))
		subs[effect.counts] = left
	end
	local r = c.pending[1]
	if not r or r.effect ~= effect then return end
	if r.left > 0 then
		r.left = r.left - 1
		left = r.left
	end
	if not c.loose then m.answers = r end
	if left == 0 then answered(c, m) end
end

local function pushed(c, m, tokens)
	local word, final = tokens[2] and tokens[2].bulk, tokens[#tokens]
	if not word or V.kinds[final.kind].bulk then return end
	local effect = V.effects[m.raw:sub(word.off + 1, word.stop):lower()]
	if effect and effect.counts then confirmed(c, m, effect, tonumber(m.raw:sub(final.off + 1, final.stop)) or 0) end
end

-- everyToken makes every line and every bulk string an argument of a type without a form.
local function everyToken(m, t, tokens)
	m.type, m.spans = t, {}
	local f = t["repeat"][1]
	for _, token in ipairs(tokens) do
		add(m, f, token.at, token.stop, token.next)
		if token.bulk then add(m, f, token.bulk.off, token.bulk.stop, token.bulk.next) end
	end
end

local function decodeRequest(c, raw, m)
	if raw:sub(1, 1) ~= "*" then
		local n, need, words = decodeInline(raw, m)
		if words then asked(c, m, nil, words) end
		if m.err and m.err.fatal then asked(c, m, nil, {}) end
		return n, need
	end
	local tokens, n, first, soft = scan(raw, true)
	if soft then
		m.err = soft
		return n
	end
	if first.count == 0 then
		m.err = fail(V.empty, 1, "Count", "expected at least one word, got an empty array")
		return n
	end
	local words = {}
	for i = 2, #tokens do words[#words + 1] = raw:sub(tokens[i].bulk.off + 1, tokens[i].bulk.stop) end
	local own = COMMANDS[words[1]:upper()]
	local t = own and firstFit(m, own, first, tokens)
	if t then
		asked(c, m, t.answers, words)
	else
		firstFit(m, GENERAL.commands, first, tokens)
		asked(c, m, nil, words)
	end
	return n
end

local function decodeAnswer(c, raw, m)
	local tokens, n, first, soft = scan(raw, false)
	if soft then
		m.err = soft
		if first.kind ~= ">" then answered(c, m) end
		return n
	end
	if first.kind == ">" then
		pushed(c, m, tokens)
		everyToken(m, BYNAME[V.push], tokens)
		return n
	end
	local r, subs = c.pending[1], c.subscribed
	local total = (subs.channels or 0) + (subs.patterns or 0) + (subs.shards or 0)
	if first.kind == "*" and not first.null and (not r or r.effect.counts or total > 0) and firstFit(m, GENERAL.pushes, first, tokens) then
		pushed(c, m, tokens)
		return n
	end
	if not r and not c.loose then
		m.err = fail(V.asked, 0, "Type", "expected no reply, because no request waits for one")
		return n
	end
	local t
	if r and r.types then
		local typed = {}
		for _, i in ipairs(r.types) do typed[#typed + 1] = P.types[i] end
		t = firstFit(m, typed, first, tokens)
	end
	if not t and not firstFit(m, GENERAL.replies, first, tokens) then everyToken(m, BYNAME[V.aggregate], tokens) end
	answered(c, m)
	return n
end

local function decodeText(c, side, raw, m)
	c.subscribed, c.silent = c.subscribed or {}, c.silent or 0
	local decode = side == 1 and decodeRequest or decodeAnswer
	local ok, n, need = pcall(decode, c, raw, m)
	if ok then return n, need end
	if n == SHORT then return nil end
	if type(n) ~= "table" then error(n, 0) end
	if n.need then return nil, n.need end
	m.err = n
	if side == 1 then asked(c, m, nil, {}) end
	return 0
end
