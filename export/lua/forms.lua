-- Forms: compares the tokens of a message with the words of a message type.

local GENERAL = {commands = {}, replies = {}, pushes = {}}
local COMMANDS = {} -- lists of types of requests, by their command in capitals
local BYNAME = {}
for _, t in ipairs(P.types) do
	BYNAME[t.name] = t
	local w = t.words and t.words[1]
	if w then
		t.kind, t.group, t.array = w.kind, 0, t.word == "*" or t.word == "%"
		for _, x in ipairs(t.words) do t.group = t.group + (x.group and 1 or 0) end
	end
	if t.sends and t.sends[1] and w then
		if t.any then
			GENERAL.commands[1], t.array = t, true
		else
			COMMANDS[t.word] = COMMANDS[t.word] or {}
			table.insert(COMMANDS[t.word], t)
			t.array, t.command = true, true
		end
	elseif t.push and w then
		table.insert(GENERAL.pushes, t)
	end
end

for _, i in ipairs(GENERAL.commands[1].answers) do table.insert(GENERAL.replies, P.types[i]) end

-- kindOf returns the first byte of the messages of a type.
local function kindOf(t) return t.command and "*" or t.word and t.word:sub(1, 1) or "*" end

-- fitsField adds the span of an argument, if its value is legal.
local function fitsField(m, raw, f, off, stop, next, values)
	local v = raw:sub(off + 1, stop)
	if check(f, v) then return false end
	values[#values + 1] = v
	m[#m + 1] = {field = f, off = off, stop = stop, next = next}
	return true
end

-- fitsWord compares a token with a word and adds the spans of its arguments.
local function fitsWord(spans, raw, w, token, values)
	local kind = V.kinds[w.kind]
	local at = token
	if token.kind ~= w.kind then return false end
	if kind.bulk then
		at = token.bulk
		if not at then return false end
	end
	local off, stop = at.off, at.stop
	local text, tail = raw:sub(off + 1, stop), w.tail or ""
	local parts = w.parts
	if not parts then return text == tail or w.fold and text:upper() == tail:upper() end
	local lead = parts[1].lead or ""
	if #text < #lead + #tail or text:sub(1, #lead) ~= lead or text:sub(#text - #tail + 1) ~= tail then return false end
	off, stop = off + #lead, stop - #tail
	if parts[1].same then return raw:sub(off + 1, stop) == values[parts[1].same] end
	if not parts[2] then return fitsField(spans, raw, parts[1].field, off, stop, at.next, values) end
	local k
	for i = off, stop - 1 do
		if raw:sub(i + 1, i + 1) == parts[2].lead then
			k = i
			if w.opaque then break end
		end
	end
	if not k then return parts[2].field.optional and fitsField(spans, raw, parts[1].field, off, stop, at.next, values) end
	return fitsField(spans, raw, parts[1].field, off, k, k + 1, values) and fitsField(spans, raw, parts[2].field, k + 1, stop, at.next, values)
end

-- fitsForm returns the spans of the arguments, if a message has the form of the type.
local function fitsForm(raw, t, first, tokens)
	if not t.words or kindOf(t) ~= first.kind then
		if not (t.word and #t.word > 1 and first.null and t.word == first.kind .. "-1") then return end
	end
	local null = t.word ~= nil and t.word:find("-1", 1, true) ~= nil and not t.command
	if null ~= first.null then return end
	if null then return {} end
	local spans, values, n = {}, {}, #t.words
	if not t.array then
		return fitsWord(spans, raw, t.words[1], tokens[1], values) and spans or nil
	end
	local once = n - t.group
	if first.count < once or t.group == 0 and first.count > n or t.group > 0 and (first.count - once) % t.group ~= 0 then return end
	if #tokens ~= first.count + 1 then return end
	for i = 1, first.count do
		local k = i
		if i > once then k = once + 1 + (i - once - 1) % t.group end
		if not fitsWord(spans, raw, t.words[k], tokens[i + 1], values) then return end
	end
	return spans
end

-- firstFit sets the type and spans of a message to those of the first type that it fits, and returns this type.
local function firstFit(m, types, first, tokens)
	for _, t in ipairs(types) do
		local spans = fitsForm(m.raw, t, first, tokens)
		if spans then
			m.type, m.spans = t, spans
			return t
		end
	end
end
