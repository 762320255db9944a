-- Text messages: lines that begin with a word, lists of lines, and lines with a body. A reply does not identify its
-- request, so c.pending has the requests that wait for their replies, the oldest first.

local SIZED = {} -- by type: the index of the field with the size of its body
local COMMANDS, REPLIES = {}, {}
for _, t in ipairs(P.types) do
	if not t.coded then
		local list = t.sends and t.sends[1] and COMMANDS or REPLIES
		list[#list + 1] = t
		for i, f in ipairs(t.fields or {}) do
			if f.kind == "length" then SIZED[t] = i end
		end
	end
	if t.free then
		t.free.unlike, t.free.like = rex_pcre2.new(t.free.unlike), rex_pcre2.new(t.free.like)
	end
end

local UNKNOWN = {}
for _, name in ipairs(P.lines.unknown) do
	for i, t in ipairs(P.types) do
		if t.name == name then UNKNOWN[#UNKNOWN + 1] = i end
	end
end

-- findLine returns the end of the line at offset at and the offset of the next line; nil if the end has not arrived; or
-- nil, nil and a violation.
local function findLine(raw, at, side)
	local scan, final = P.lines.scan[side], P.lines["end"]
	local k = find(raw, final, at, math.min(#raw, at + scan))
	if k then
		local ends = k
		if final == "\n" and ends > at and raw:byte(ends) == 13 then ends = ends - 1 end
		return ends, k + #final
	elseif #raw - at >= scan then
		return nil, nil, fail(P.lines.length, at + scan - 1, P.lines.word[side].name, "expected the end of the line within " .. scan .. " bytes", true)
	end
end

local function hasWord(line, word)
	return line:sub(1, #word) == word and (#line == #word or line:sub(#word + 1, #word + 1) == " ")
end

-- checkLine checks the length of a line, and looks for parts of line ends in it.
local function checkLine(m, side, ends, next)
	local most = P.lines.max and P.lines.max[side] or 0
	local name = P.lines.word[side].name
	if most > 0 and next > most then return fail(P.lines.length, most, name, "expected a line of at most " .. most .. " bytes, got " .. next) end
	local k = P.lines.inside and m.raw:sub(1, ends):find("[\r\n]")
	if k then return fail(P.lines.inside, k - 1, name, "expected CR LF, got one of them alone") end
end

-- readLine decodes the word of m.type and the fields in its line.
local function readLine(m, side, ends, next)
	local t, word = m.type, P.lines.word[side]
	local form, stop = t.form[side], #t.word
	local more, at = stop < ends, stop < ends and stop + 1 or stop
	add(m, word, 0, stop, at)
	local fields = t.fields or {}
	if SIZED[t] then fields = {unpack(fields, 1, SIZED[t])} end
	local err
	if #fields > 0 then
		err = split(m, form, fields, t.sep, at, ends, more)
	elseif more and at == ends then
		err = fail(form.trailing, stop, word.name, "expected the end of the line, got a space before it")
	elseif more then
		err = fail(form.extra, at, word.name, "expected no argument after " .. t.word .. ", got one")
	end
	last(m).next = next
	return err
end

-- announced returns the number of bytes after an illegal line of the type, according to its last word.
local function announced(t, line)
	local args, final = -1, ""
	for w in line:gmatch("[^ ]+") do args, final = args + 1, w end
	local k = SIZED[t]
	if not k or args < k or check(t.fields[k], final) then return 0 end
	return tonumber(final) + #P.lines["end"]
end

-- readBody decodes the body of a message whose line ends at next. types have the same word; a body that is a list or
-- dictionary as the first of them declares gives the message this type, any other body gives it the last one.
local function readBody(m, side, types, next)
	local raw, body, final = m.raw, P.lines.body[side], P.lines["end"]
	local size = last(m)
	local n, most = tonumber(value(m, size)), math.max(body.max, P.maxdata)
	local stop = next + n
	if n > most then
		m.err = fail(body.size, size.off, size.field.name, "expected a body of at most " .. most .. " bytes, got " .. n)
		return stop + #final
	elseif #raw < stop + #final then
		return nil, stop + #final
	end
	local t = types[#types]
	local field = t.fields[#t.fields]
	if raw:sub(stop + 1, stop + #final) ~= final then
		local k, scan = find(raw, final, stop, math.min(#raw, stop + P.lines.scan[side])), P.lines.scan[side]
		if not k and #raw < stop + scan then return nil end
		m.err = fail(body["end"], stop, types[1].fields[#types[1].fields].name, "expected a line end after the body, got other bytes", not k)
		return k and k + #final or 0
	end
	if types[1]["repeat"] then
		local spans, bad, detail = readYAML(raw, types[1], next, stop)
		if bad then
			m.type, m.err = t, fail(field.rule, bad, field.name, detail)
			return stop + #final
		elseif spans then
			m.type = types[1]
			for _, s in ipairs(spans) do m.spans[#m.spans + 1] = s end
			return stop + #final
		end
	end
	m.type = t
	add(m, field, next, stop, stop + #final)
	return stop + #final
end

-- readTyped decodes a message that has one of the types, which have the same word.
local function readTyped(m, side, types, ends, next)
	local t = types[1]
	m.type = t
	m.err = checkLine(m, side, ends, next) or readLine(m, side, ends, next)
	if m.err then return next + announced(t, m.raw:sub(1, ends)) end
	if not SIZED[t] then return next end
	return readBody(m, side, types, next)
end

local function unknownLine(m, side, ends, next, rule, detail)
	add(m, P.lines.word[side], 0, ends, next)
	m.err = checkLine(m, side, ends, next) or fail(rule, 0, P.lines.word[side].name, detail)
	return next
end

local function decodeCommand(c, raw, m)
	local ends, next, err = findLine(raw, 0, 1)
	if not ends then
		m.err = err
		return err and 0
	end
	local line, n, need = raw:sub(1, ends)
	for _, t in ipairs(COMMANDS) do
		if hasWord(line, t.word) then
			n, need = readTyped(m, 1, {t}, ends, next)
			if not n then return nil, need end
			break
		end
	end
	if not m.type then n = unknownLine(m, 1, ends, next, P.lines.command, "expected a command") end
	local answers = m.type and m.type.answers or m.err and UNKNOWN
	if answers then
		m.asks = {answers = answers, line = line:match("^%s*(.-)%s*$")}
		c.pending[#c.pending + 1] = m.asks
	end
	return n
end

-- anyLine reports whether a reply of the type can be any line, or any list.
local function anyLine(t)
	local f = t["repeat"] or t.fields
	return not t.word and not t.free and f and #f == 1 and f[1].kind == "opaque"
end

local fits

-- isFree reports whether a line is a reply in no particular form.
local function isFree(free, request, line)
	local text = line:match("^%s*(.-)%s*$")
	if text == "" or free.unlike:find(text) or request and text == request.line then return false end
	for _, t in ipairs(REPLIES) do
		if not t.free and not anyLine(t) and (line == t.stop or fits(t, request, line)) then return false end
	end
	for _, i in ipairs(request and request.answers or {}) do
		if anyLine(P.types[i]) and P.types[i].stop then return free.like:find(line) ~= nil end
	end
	return true
end

-- fits reports whether the first line of a reply matches the type.
function fits(t, request, line)
	if t.word then return hasWord(line, t.word) and (t.fields ~= nil) == (#line > #t.word) end
	if t.free then return isFree(t.free, request, line) end
	if not t.stop or line == t.stop then return true end
	return split({raw = line, spans = {}}, t.form[2], t["repeat"], t.sep, 0, #line, true) == nil
end

-- isRow reports whether a line may be a row of the list, perhaps an illegal one, because it has most of the fields.
local function isRow(t, line)
	local n = #t["repeat"]
	return n == 1 or 2 * (1 + select(2, line:gsub(t.sep, ""))) > n
end

-- decodeList decodes lines up to the one that ends the list. A packet and a line that cannot be a row end the list, too.
-- If the line is short, it is a damaged end of the list; otherwise it is the beginning of the next message.
local function decodeList(raw, m, t)
	local at, form, done, crlf, mixed = 0, t.form[2], false
	local function cut(n)
		m.err = m.err or fail(P.lines.reply, at, P.lines.stop.name, "expected a row of the list or its end")
		return n
	end
	repeat
		if at > 0 and raw:byte(at + 1) == 0 then return cut(at) end
		local ends, next, err = findLine(raw, at, 2)
		if not ends then
			m.err = err
			return err and 0
		end
		local line = raw:sub(at + 1, ends)
		if at > 0 and line ~= t.stop and not isRow(t, line) then return cut(#line <= #t.stop and next or at) end
		local cr = ends < next - 1
		if crlf ~= nil and cr ~= crlf then mixed = mixed or ends end
		crlf = cr
		if line == t.stop then
			done = true
			if not m.err then add(m, P.lines.stop, at, ends, next) end
		elseif not m.err then
			m.err = split(m, form, t["repeat"], t.sep, at, ends, true)
			if last(m) then last(m).next = next end
		end
		at = next
	until done
	if mixed and not m.err then m.err = fail(P.lines.mixed, mixed, P.lines.stop.name, "expected the same line end for all lines of the list") end
	return at
end

-- sameWord lists the types among the answers that have the word of the k-th, from there on.
local function sameWord(answers, k)
	local list, word = {}, P.types[answers[k]].word
	while answers[k] and P.types[answers[k]].word == word do
		list[#list + 1] = P.types[answers[k]]
		k = k + 1
	end
	return list
end

-- likelyList returns the list among the answers that has most fields of a row in the line, but not all in their form.
local function likelyList(answers, line)
	for _, i in ipairs(answers) do
		local t = P.types[i]
		if t.stop and t["repeat"] and #t["repeat"] > 1 and isRow(t, line) then return i end
	end
end

local function decodeReply(c, raw, m)
	local ends, next, err = findLine(raw, 0, 2)
	if not ends then
		m.err = err
		return err and 0
	end
	local request, line = c.pending[1], raw:sub(1, ends)
	local rest = request and request.damaged -- the list whose first row was illegal and whose other rows follow
	if rest and not fits(P.types[rest], request, line) and not likelyList({rest}, line) then
		table.remove(c.pending, 1)
		request, rest = c.pending[1], nil
	end
	local answers, chosen, words = rest and {rest} or request and request.answers or {}, nil, true
	for k, i in ipairs(answers) do
		words = words and P.types[i].word
		if not chosen and fits(P.types[i], request, line) then chosen = k end
	end
	for k, i in ipairs(answers) do -- a reply that has the wrong number of arguments
		if not chosen and words and hasWord(line, P.types[i].word) then chosen = k end
	end
	local t, n, need = chosen and P.types[answers[chosen]]
	local damaged = not t and likelyList(answers, line)
	if damaged then
		m.type = P.types[damaged]
		m.err = split(m, m.type.form[2], m.type["repeat"], m.type.sep, 0, ends, true)
		if last(m) then last(m).next = next end
		request.damaged = damaged
		return next
	elseif not t then
		n = unknownLine(m, 2, ends, next, request and P.lines.reply or P.lines.asked, request and "expected a reply to the oldest request" or "expected no reply, because no request waits for one")
		for _, r in ipairs(REPLIES) do
			if r.word and hasWord(line, r.word) then
				n = n + announced(r, line)
				break
			end
		end
	elseif t.stop then
		m.type = t
		n, need = decodeList(raw, m, t)
	elseif t.word then
		n, need = readTyped(m, 2, sameWord(answers, chosen), ends, next)
	else
		m.type = t
		m.err = split(m, t.form[2], t.fields, t.sep, 0, ends, true)
		if #m.spans > 0 then last(m).next = next end
		n = next
	end
	if not n then return nil, need end
	if request then m.answers = table.remove(c.pending, 1) end
	return n
end

local function decodeText(c, side, raw, m)
	if side == 1 then return decodeCommand(c, raw, m) end
	return decodeReply(c, raw, m)
end
