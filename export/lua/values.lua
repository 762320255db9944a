-- Values: a message is a value, which may contain other values. scan finds its end and stores a list of tokens
-- {kind, at, off, stop, next, bulk}: lines, headers of arrays, and bulk strings. off and stop delimit the value without
-- its first byte, and after is the offset of the token's line end.

local V = P.values
for _, k in pairs(V.kinds) do
	if k.form then k.form = rex_pcre2.new(k.form) end
end

local SHORT = {} -- is thrown if the message is incomplete

local function fatal(rule, at, field, detail) error(fail(rule, at, field, detail, true), 0) end

-- lineEnd returns the end of a line and the offset of the next one.
local function lineEnd(raw, at)
	local k = raw:find("[\r\n]", at + 1)
	local stop = k and k - 1 or #raw
	if stop - at >= V.maxline - 1 then fatal(V.length, at + V.maxline - 1, "Value", "expected the end of the line within " .. V.maxline .. " bytes") end
	if not k or k == #raw and raw:byte(k) == 13 then error(SHORT, 0) end
	if raw:sub(k, k + 1) ~= "\r\n" then fatal(V.lineend, stop, "Value", "expected CR LF, got one of them alone") end
	return stop, k + 1
end

-- count returns a count or size, or nil for null, and where its line ends.
local function count(raw, at, kind, request)
	local rule, name, most = V.count, "Count", V.maxcount
	if kind.bulk then rule, name, most = V.size, "Size", V.maxbulk end
	local digits = raw:match("^%-?[0-9]*", at + 2)
	local stop = at + 1 + #digits
	local unsigned = digits:gsub("^-", "")
	if unsigned:find("^0.") then fatal(rule, at + 1, name, "expected a number without leading zeros") end
	if #unsigned > 10 or (tonumber(unsigned) or 0) > most then fatal(rule, at + 1, name, "expected at most " .. most .. ", got more") end
	if stop == #raw then error(SHORT, 0) end
	if raw:byte(stop + 1) ~= 13 then fatal(rule, stop, name, "expected a decimal digit") end
	local n = tonumber(digits)
	if not n or digits == "-0" then fatal(rule, at + 1, name, "expected a decimal number, got none") end
	if stop + 1 == #raw then error(SHORT, 0) end
	if raw:byte(stop + 2) ~= 10 then fatal(V.lineend, stop, name, "expected CR LF, got CR alone") end
	if n < 0 then
		if not (request and not kind.bulk) and (not kind.nulls or n ~= -1 or request) then fatal(rule, at + 1, name, "expected a number of at least 0") end
		n = nil
	end
	return n, stop, stop + 2
end

local function judge(kind, v, at, name)
	if not kind.form then return end
	local n = v:gsub("^%-", "")
	if not kind.form:find(v) then return fail(kind.rule, at, name, "expected another form of the value") end
	if kind.int64 and over(n, v == "-" .. n and "9223372036854775808" or "9223372036854775807") then
		return fail(kind.rule, at, name, "expected an integer of at most 64 bits")
	end
end

-- scan returns the tokens of the message at the beginning of raw, its length, the first value {kind, null, count}, and the
-- first violation that does not hide the end of the message.
local function scan(raw, request)
	local tokens, at, due, attributes, depth, first, soft, data, all = {}, 0, {[0] = 1}, {}, 0, nil, nil, 0, 0
	while depth >= 0 do
		if due[depth] == 0 then
			depth = depth - 1
		else
			if at >= #raw then error(SHORT, 0) end
			local c = raw:sub(at + 1, at + 1)
			local kind = V.kinds[c]
			if request and depth > 0 and c ~= "$" then fatal(V.word, at, "Type", "expected a bulk string") end
			if not kind or c == ">" and depth > 0 then fatal(V.badkind, at, "Type", "expected a byte that begins a value") end
			local n, stop, next
			if kind.line then
				stop, next = lineEnd(raw, at)
				soft = soft or judge(kind, raw:sub(at + 2, stop), at + 1, "Value")
				tokens[#tokens + 1] = {kind = c, at = at, off = at + 1, stop = stop, next = next}
			else
				n, stop, next = count(raw, at, kind, request)
				local token = {kind = c, at = at, off = at + 1, stop = stop, next = next, null = n == nil}
				tokens[#tokens + 1] = token
				if kind.bulk and n then
					data = data + n
					if data > P.maxdata then fatal(V.cap, at, "Size", "expected at most " .. P.maxdata .. " bytes") end
					local tail = raw:sub(next + n + 1, next + n + 2)
					if ("\r\n"):sub(1, #tail) ~= tail then fatal(V.bulkend, next + n, "Data", "expected CR LF immediately after the bulk string") end
					if #tail < 2 then error({need = next + n + 1 + #tail}, 0) end
					soft = soft or judge(kind, raw:sub(next + 1, next + n), next, "Data")
					token.bulk = {off = next, stop = next + n, next = next + n + 2}
					next = next + n + 2
				end
			end
			at = next
			if c ~= "|" then
				due[depth], attributes[depth] = due[depth] - 1, 0
			else
				attributes[depth] = (attributes[depth] or 0) + 1
				if attributes[depth] > V.maxdepth then fatal(V.depth, at, "Type", "expected fewer attributes before a value") end
			end
			n = (n or 0) * (kind.array or 0)
			if not first then first = {kind = c, null = tokens[1].null or false, count = n} end
			all = all + n
			if all > V.maxelements then fatal(V.cap, at, "Count", "expected at most " .. V.maxelements .. " elements") end
			if n > 0 then
				depth = depth + 1
				if depth > V.maxdepth then fatal(V.depth, at, "Type", "expected at most " .. V.maxdepth .. " nested values") end
				due[depth], attributes[depth] = n, 0
			end
		end
	end
	return tokens, at, first, soft
end
