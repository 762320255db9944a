-- Bodies in YAML: a dictionary of scalars or a list of scalars, one entry per line or in brackets.

local function utf8Error(s)
	local i = 1
	while i <= #s do
		local c = s:byte(i)
		local n = c < 0x80 and 1 or c >= 0xc2 and c < 0xe0 and 2 or c >= 0xe0 and c < 0xf0 and 3 or c >= 0xf0 and c < 0xf5 and 4 or 0
		local rest = n > 0 and s:sub(i + 1, i + n - 1):match("^[\128-\191]*$")
		local second = s:byte(i + 1) or 0
		if not rest or #rest < n - 1 or c == 0xe0 and second < 0xa0 or c == 0xed and second > 0x9f or c == 0xf0 and second < 0x90 or c == 0xf4 and second > 0x8f then
			return i
		end
		if c < 32 and c ~= 9 and c ~= 10 and c ~= 13 or c == 127 then return i end
		i = i + n
	end
end

local function codepoint(n)
	if n < 0x80 then return string.char(n) end
	if n < 0x800 then return string.char(0xc0 + math.floor(n / 64), 0x80 + n % 64) end
	if n >= 0xd800 and n < 0xe000 or n > 0x10ffff then n = 0xfffd end
	if n < 0x10000 then return string.char(0xe0 + math.floor(n / 4096), 0x80 + math.floor(n / 64) % 64, 0x80 + n % 64) end
	return string.char(0xf0 + math.floor(n / 262144), 0x80 + math.floor(n / 4096) % 64, 0x80 + math.floor(n / 64) % 64, 0x80 + n % 64)
end

local ESCAPES = {["0"] = "\0", a = "\a", b = "\b", t = "\t", ["\t"] = "\t", n = "\n", v = "\v", f = "\f", r = "\r", e = "\27", [" "] = " ",
	['"'] = '"', ["/"] = "/", ["\\"] = "\\", N = "\194\133", ["_"] = "\194\160", L = "\226\128\168", P = "\226\128\169"}
local DIGITS = {x = 2, u = 4, U = 8}

-- scalarValue returns the value of a scalar that has the quote before it.
local function scalarValue(v, quote)
	if quote == "'" then return (v:gsub("''", "'")) end
	if quote ~= '"' then return v end
	local out, i = {}, 1
	while i <= #v do
		local c = v:sub(i, i)
		if c == "\\" then
			i = i + 1
			c = v:sub(i, i)
			if DIGITS[c] then
				out[#out + 1] = codepoint(tonumber(v:sub(i + 1, i + DIGITS[c]), 16) or 0)
				i = i + DIGITS[c]
			else
				out[#out + 1] = ESCAPES[c] or ""
			end
		else
			out[#out + 1] = c
		end
		i = i + 1
	end
	return table.concat(out)
end

-- plain reports whether a plain scalar has another type than string, so that it may differ from the same text in quotes.
local function untagged(v)
	return v == "" or ({null = 1, Null = 1, NULL = 1, ["~"] = 1, ["true"] = 1, True = 1, TRUE = 1, ["false"] = 1, False = 1, FALSE = 1})[v] ~= nil
		or v:find("^[-+]?%d+$") or v:find("^0o[0-7]+$") or v:find("^0x%x+$") or v:find("^[-+]?%.?%d+%.?%d*$") or v:find("^[-+]?%.?%d+%.?%d*[eE][-+]?%d+$")
		or v:find("^[-+]?%.inf$") or v:find("^[-+]?%.Inf$") or v:find("^[-+]?%.INF$") or v:find("^%.[nN]a[nN]$") or v:find("^%.NAN$")
end

local Reader = {}
Reader.__index = Reader

-- bad ends the decoding with an error at an offset.
local function bad(at, detail) error({at = at, detail = detail}, 0) end

function Reader:peek(k)
	local i = self.at + (k or 0)
	return i < self.stop and self.raw:sub(i + 1, i + 1) or "\n"
end

function Reader:done() return self.at >= self.stop end

function Reader:breaks(k)
	local c = self:peek(k)
	return c == "\n" or c == "\r" and self:peek((k or 0) + 1) == "\n"
end

function Reader:blank(k)
	local c = self:peek(k)
	return c == " " or c == "\t" or self:breaks(k)
end

function Reader:marker(c)
	return self.at == self.line and self:peek() == c and self:peek(1) == c and self:peek(2) == c and self:blank(3)
end

function Reader:endLine() while not self:breaks() do self.at = self.at + 1 end end

function Reader:spaces()
	local spaced = self.at == self.line
	while not self:done() and (self:peek() == " " or self:peek() == "\t") do self.at, spaced = self.at + 1, true end
	if spaced and self:peek() == "#" then self:endLine() end
end

function Reader:space()
	self:spaces()
	while not self:done() and self:breaks() do
		while self:peek() ~= "\n" do self.at = self.at + 1 end
		self.at = self.at + 1
		self.line = self.at
		self:spaces()
	end
end

function Reader:note(row)
	local fields, final = self.type["repeat"], self.spans[#self.spans]
	final.next = row
	local f = fields[1]
	if final.field == f and self.dict then f = fields[2] end
	local before = self.raw:sub(self.off, self.off)
	local v = scalarValue(self.raw:sub(self.off + 1, self.ends), before)
	self.spans[#self.spans + 1] = {field = f, off = self.off, stop = self.ends, next = self.stop, text = v}
	local quoted = v:find("^\".*\"$") or v:find("^'.*'$")
	if check(f, v) or quoted and #v > 1 then self.untyped = true end
end

local function isBracket(c) return c:find("^[,%[%]{}]$") end

function Reader:quoted(quote)
	local start = self.at
	self.at = self.at + 1
	while not self:breaks() do
		local c = self:peek()
		if c == "'" and quote == c and self:peek(1) == c then
			self.at = self.at + 1
		elseif c == quote then
			self.off, self.ends = start + 1, self.at
			self.at = self.at + 1
			return
		elseif c == "\\" and quote == '"' then
			self.at = self.at + 1
			local n = DIGITS[self:peek()]
			if not n and not ESCAPES[self:peek()] then bad(self.at - 1, "expected an escape sequence after the backslash") end
			for _ = 1, n or 0 do
				self.at = self.at + 1
				if not self:peek():find("%x") then bad(self.at, "expected a hexadecimal digit") end
			end
		end
		self.at = self.at + 1
	end
	bad(start, "expected a closing quote in the same line, got none")
end

function Reader:scalar()
	local c = self:peek()
	if c == '"' or c == "'" then return self:quoted(c) end
	if c:find("^[,%[%]{}&*!|>%%@`#]$") or self:breaks() or c:find("^[-?:]$") and (self:blank(1) or self.flow and isBracket(self:peek(1))) then
		bad(self.at, "expected a scalar")
	end
	self.off, self.ends = self.at, self.at
	while not self:done() do
		c = self:peek()
		if c == " " or c == "\t" then
			if self:peek(1) == "#" then return end
		elseif c == ":" and (self:blank(1) or self.flow and isBracket(self:peek(1))) or self.flow and isBracket(c) or self:breaks() then
			return
		else
			self.ends = self.at + 1
		end
		self.at = self.at + 1
	end
end

-- key records a key, which must not occur twice.
function Reader:key(start)
	local v = scalarValue(self.raw:sub(self.off + 1, self.ends), self.raw:sub(self.off, self.off))
	local id = v .. "\0" .. self.off - start
	if self.keys[id] or not untagged(v) and (self.keys[v .. "\0" .. 0] or self.keys[v .. "\0" .. 1]) then
		self.again = self.again or start
	end
	self.keys[id] = true
end

function Reader:value(row)
	local before = self.at
	while not self:done() and (self:peek() == " " or self:peek() == "\t") do self.at = self.at + 1 end
	local start = self.at
	row = row or start
	self.off, self.ends = start, start
	if self:peek() == "#" and start > before then
		self:endLine()
		if self.dict then self.ends = self.at end
	end
	if self:breaks() then return self:note(row) end
	self:scalar()
	if self:peek() == ":" and self:blank(1) then bad(start, "expected a scalar, got a dictionary") end
	self:note(row)
end

function Reader:entry()
	local item = self:peek() == "-" and self:blank(1)
	if item == self.dict then bad(self.at, self.dict and "expected a key" or "expected a list item") end
	if not self.dict then
		self.at = self.at + 1
		return self:value(self.at - 1)
	end
	local start = self.at
	self:scalar()
	self:key(start)
	self:note(start)
	while not self:done() and (self:peek() == " " or self:peek() == "\t") do self.at = self.at + 1 end
	if self:peek() ~= ":" or not self:blank(1) then bad(start, "expected a key, a colon and a value, got no colon after the key") end
	self.at = self.at + 1
	self:value()
end

function Reader:block()
	if self:done() or self:marker(".") or self:marker("-") then bad(self.start, "expected entries, got an empty document") end
	local indent = self.at - self.line
	repeat
		if self.at - self.line ~= indent then bad(self.at, "expected an entry after " .. indent .. " spaces") end
		if self.raw:sub(self.line + 1, self.at):find("\t") then bad(self.line, "expected spaces before the entry, got a tab") end
		self:entry()
		self:spaces()
		if not self:breaks() then bad(self.at, "expected the end of the line after the scalar") end
		self:space()
	until self:done() or self:marker(".") or self:marker("-")
end

function Reader:brackets(open)
	if (open == "{") ~= self.dict then bad(self.start, "expected the other kind of brackets") end
	local close = open == "{" and "}" or "]"
	self.flow, self.at = true, self.at + 1
	while true do
		self:space()
		if self:done() or self:marker("-") or self:marker(".") then bad(self.at, "expected " .. close) end
		if self:peek() == close then
			self.at = self.at + 1
			self:spaces()
			if not self:breaks() then bad(self.at, "expected the end of the line after " .. close) end
			return
		end
		local start = self.at
		self:scalar()
		if self.dict then self:key(start) end
		self:note(start)
		self:space()
		if not self:done() and self:peek() == ":" then
			if not self.dict then bad(start, "expected a scalar, got a dictionary") end
			self.at = self.at + 1
			self:space()
		end
		if self.dict then
			local row = self.at
			self.off, self.ends = row, row
			if not self:done() and self:peek() ~= "," and self:peek() ~= close then self:scalar() end
			self:note(row)
			self:space()
		end
		if not self:done() and self:peek() == "," then
			self.at = self.at + 1
		elseif self:done() or self:peek() ~= close then
			bad(self.at, "expected a comma or " .. close)
		end
	end
end

function Reader:document()
	local k = utf8Error(self.raw:sub(self.start + 1, self.stop))
	if k then bad(self.start + k - 1, "expected text in UTF-8") end
	self:space()
	local directive = self.at
	while self.at == self.line and self:peek() == "%" do
		self:endLine()
		self:space()
	end
	if self.at > directive and not self:marker("-") then bad(self.at, "expected --- after the directives") end
	if self:marker("-") then
		self.at = self.at + 3
		local header = self.line
		self:space()
		if not self:done() and self.line == header and not self:peek():find("^[%[{]$") then bad(self.at, "expected the end of the line after ---") end
	end
	if self:peek():find("^[%[{]$") then self:brackets(self:peek()) else self:block() end
	self:space()
	if self:marker(".") then
		self.at = self.at + 3
		self:space()
	end
	if not self:done() then bad(self.at, "expected the end of the YAML document") end
	if self.again then bad(self.again, "expected each key once") end
end

-- readYAML decodes raw[at:stop] as the dictionary or list that a type declares. It returns the spans of its entries; or
-- nil if the values are not those of the type; or nil, the offset of an error and its description.
local function readYAML(raw, t, at, stop)
	local start
	for _, f in ipairs(t.fields) do
		if f.kind == "literal" then start = f end
	end
	local spans = {{field = start, off = at, stop = at, next = stop}}
	if raw:sub(at + 1, stop) == start.lead then return spans end
	local r = setmetatable({raw = raw:sub(1, stop), type = t, start = at, at = at, line = at, stop = stop, spans = spans, keys = {}, dict = #t["repeat"] > 1, flow = false}, Reader)
	local ok, err = pcall(r.document, r)
	if not ok then
		if type(err) ~= "table" then error(err, 0) end
		return nil, err.at, err.detail
	end
	if not r.untyped then return spans end
end
