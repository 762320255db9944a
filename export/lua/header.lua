-- Binary messages: a header with a magic, the number of the type, and the number of bytes that follow.
-- A decoder returns the length of the message; or nil and the number of bytes that it needs.

local CODES = {}
for _, t in ipairs(P.types) do
	if t.coded then CODES[t.code or 0] = t end
end

local function integer(raw, at, width)
	local n = 0
	for i = at + 1, at + width do n = n * 256 + raw:byte(i) end
	return n
end

-- binary reports whether a message is binary, which its first byte decides.
local function binary(raw)
	local magic = P.header.magic
	return not magic or not P.lines or raw:byte(1) == magic[1]:byte(1)
end

-- magicError returns the violation by the bytes of the magic that have arrived.
local function magicError(c, side, raw)
	local h = P.header
	local width, own = h.fields[1].width, c.magic
	if h.magic then
		local got = raw:sub(1, width)
		if got == h.magic[side]:sub(1, #got) then return end
		if got == h.magic[3 - side] then return fail(h.reversed, width - 1, h.fields[1].name, "expected the magic of the other direction") end
		if got == h.magic[3 - side]:sub(1, #got) then return end
	elseif not own or raw:sub(1, width) == own:sub(1, #raw) then
		return
	end
	return fail(h.other, 0, h.fields[1].name, h.magic and "expected a known magic" or "expected the magic of the first message of the connection", true)
end

-- repetitions decodes fields that may occur any number of times. Each has the separator before it.
local function repetitions(m, t, form, at, stop)
	local fields, count = t.fields, 0
	while true do
		if count == P.header.maxrepeat then
			return fail(P.header.repeatrule, at, fields[1].name, "expected at most " .. count .. " values, got more")
		end
		local ends = find(m.raw, t.sep, at + #(fields[1].lead or ""), stop) or stop
		local err = split(m, form, fields, t.sep, at, ends, true)
		if err or ends == stop then return err end
		if ends + #t.sep == stop then return fail(form.trailing, ends, fields[1].name, "expected the end of the message after the last value, got a separator") end
		at, fields, count = ends, t["repeat"], count + 1
	end
end

local function arguments(m, t, form, at, stop)
	if t["repeat"] then
		if at == stop then return end
		return repetitions(m, t, form, at, stop)
	end
	local fields = t.fields
	if fields then
		local err = split(m, form, fields, t.sep, at, stop, at < stop or not fields[1].optional)
		if err then return err end
	end
	if last(m).next < stop then
		return fail(form.extra, last(m).next, t.name, "expected the end of the message after the last argument, got " .. stop - last(m).next .. " more bytes")
	end
end

local function decodeBinary(c, side, raw, m)
	local h, at = P.header, 0
	local err = magicError(c, side, raw)
	if err and err.fatal then
		m.err = err
		return 0
	end
	local size = 0
	for _, f in ipairs(h.fields) do size = size + f.width end
	if #raw < size then return nil, size end
	local magic, code, length = h.fields[1], h.fields[2], h.fields[3]
	local data = integer(raw, magic.width + code.width, length.width)
	if data > P.maxdata then
		m.err = fail(h.size, magic.width + code.width, length.name, "expected a length of at most " .. P.maxdata .. " bytes, got " .. data, true)
		return 0
	end
	local n = size + data
	if #raw < n then return nil, n end
	if not h.magic then c.magic = c.magic or raw:sub(1, magic.width) end
	for _, f in ipairs(h.fields) do
		add(m, f, at, at + f.width, at + f.width)
		at = at + f.width
	end
	m.number = integer(raw, magic.width, code.width)
	local t = CODES[m.number]
	m.type, m.err = t, err
	if err then return n end
	if not t then
		m.err = fail(h.known, magic.width, code.name, "expected a known type, got " .. m.number)
	elseif not (t.sends and t.sends[side]) then
		m.err = fail(h.direction, magic.width, code.name, "expected a message that this side sends, got " .. t.name)
	else
		m.err = arguments(m, t, t.form[side], size, n)
	end
	return n
end
