-- Fields: splits a message into its fields and checks their values. Offsets count from 0, as in the reports of jobwire.
-- A message m has the bytes raw, spans {field, off, stop, next}, the type, the length size, and at most one err.

local function fail(rule, at, field, detail, fatal)
	return {rule = rule, at = at, field = field, detail = detail, fatal = fatal}
end

-- find returns the offset of a text in raw[at:stop], or nil.
local function find(raw, text, at, stop)
	if text == "" then return nil end
	local k = raw:find(text, at + 1, true)
	if k and k - 1 + #text <= stop then return k - 1 end
end

local function begins(raw, text, at, stop)
	return at + #text <= stop and raw:sub(at + 1, at + #text) == text
end

local function add(m, field, off, stop, next)
	m.spans[#m.spans + 1] = {field = field, off = off, stop = stop, next = next}
end

local function last(m) return m.spans[#m.spans] end

local function value(m, span) return m.raw:sub(span.off + 1, span.stop) end

-- over reports whether a decimal number is greater than another one. Neither may have leading zeros.
local function over(a, b)
	if #a ~= #b then return #a > #b end
	return a > b
end

local LIMIT = {number = "18446744073709551615", length = "18446744073709551615", signed = "9223372036854775807"}

-- number checks decimal text, and returns a description of what is wrong with it.
local function number(f, v)
	local digits, limit = v, LIMIT[f.kind]
	if f.kind == "signed" and v:sub(1, 1) == "-" then
		digits, limit = v:sub(2), "9223372036854775808"
	end
	local n = digits:gsub("^0+(.)", "%1")
	if not digits:find("^[0-9]+$") or over(n, limit) then
		return "expected a decimal number of at most 64 bits"
	elseif f.kind ~= "signed" and (over(f.lo or "0", n) or f.hi and over(n, f.hi)) then
		return f.hi and "expected a number from " .. (f.lo or "0") .. " to " .. f.hi or "expected a number of at least " .. f.lo
	elseif f.canonical and #digits > 1 and digits:sub(1, 1) == "0" then
		return "expected a number without leading zeros"
	end
end

local function bigendian(v)
	local n = UInt64(0)
	for i = 1, #v do n = n * UInt64(256) + UInt64(v:byte(i)) end
	return n
end

-- check returns the rule that a value violates, what was expected, and the offset of the error in the value.
local function check(f, v)
	if f.max and #v > f.max then return f.maxrule, "expected at most " .. f.max .. " bytes, got " .. #v, f.max end
	if v == "" and f.nonempty then return f.nonempty, "expected a value that is not empty", 0 end
	if f.kind == "text" then
		if f.width and #v ~= f.width then return f.rule, "expected " .. f.width .. " bytes", 0 end
		if f.values then
			local listed = false
			for _, s in ipairs(f.values) do listed = listed or s == v end
			if not listed then return f.rule, "expected one of " .. table.concat(f.values, ", "), 0 end
		end
		local k = f.bad and v:find(f.bad)
		if k then return f.rule, "expected only allowed characters", k - 1 end
		if f.notfirst and v ~= "" and f.notfirst:find(v:sub(1, 1), 1, true) then
			return f.rule, "expected a first character that is allowed at the beginning", 0
		end
	elseif f.kind == "uint" and f.hi then
		local n = tostring(bigendian(v))
		if over(n, f.hi) or over(f.lo or "0", n) then return f.rule, "expected a number from " .. (f.lo or "0") .. " to " .. f.hi, 0 end
	elseif f.kind == "number" or f.kind == "signed" or f.kind == "length" and not f.width then
		local wrong = number(f, v)
		if wrong then return f.rule, wrong, 0 end
	end
end

-- split decodes fields in raw[at:stop] and returns the first violation. more is false if no field begins at offset at.
local function split(m, form, fields, sep, at, stop, more)
	local raw = m.raw
	for i, f in ipairs(fields) do
		if not more then
			if f.optional then return end
			return fail(form.missing, at, f.name, "expected a value for this argument, got the end of the message")
		end
		if form.spacing and begins(raw, sep, at, stop) then
			return fail(form.spacing, at, f.name, "expected one separator before the argument, got several")
		end
		if f.lead then
			if not begins(raw, f.lead, at, stop) then return fail(f.rule, at, f.name, "expected other bytes before the value") end
			at = at + #f.lead
		end
		local ends, next, final = stop, stop, i == #fields
		more = false
		if f.width then
			ends = at + f.width
			if ends > stop then return fail(form.missing, stop, f.name, "expected " .. f.width .. " bytes, got " .. stop - at) end
			next, more = ends, true
		elseif not final or f.kind ~= "opaque" or f.term then
			local term = f.term or sep
			local k = find(raw, term, at, stop)
			if k and (not final or f.term) then
				ends, next, more = k, k + #term, true
			elseif k then
				add(m, f, at, stop, stop)
				if k + #sep == stop then return fail(form.trailing, k, f.name, "expected the end of the message after the last argument, got a separator") end
				return fail(form.extra, k + #sep, f.name, "expected no more arguments, got another one")
			end
		end
		add(m, f, at, ends, next)
		local rule, detail, bad = check(f, raw:sub(at + 1, ends))
		if rule then return fail(rule, at + bad, f.name, detail) end
		at = next
	end
end
