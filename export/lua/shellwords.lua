-- Requests that are a line of words.

local BLANK, ENDS = "[ \t\n\v\f\r]", "[ \t\n\r]"

-- cut splits a line into words like a shell. It returns the words, or nil, the offset of an error and its description.
local function cut(line)
	local words, i, n = {}, 1, #line
	while true do
		while i <= n and line:find("^" .. BLANK, i) do i = i + 1 end
		if i > n then return words end
		local start, quote, opened = i, nil, i
		while i <= n and (quote or not line:find("^" .. ENDS, i)) do
			local c = line:sub(i, i)
			if c == "\0" then
				return nil, i - 1, "expected text, got a NUL byte"
			elseif not quote and (c == '"' or c == "'") then
				quote, opened = c, i
			elseif c == "\\" and i < n and (quote == '"' or quote == "'" and line:sub(i + 1, i + 1) == "'") then
				i = i + 1
			elseif quote and c == quote then
				if i < n and not line:find("^" .. BLANK, i + 1) then return nil, i, "expected a space after the closing quote" end
				quote = nil
			end
			i = i + 1
		end
		if quote then return nil, opened - 1, "expected a closing quote, got the end of the line" end
		words[#words + 1] = line:sub(start, i - 1)
	end
end

local function decodeInline(raw, m)
	local k = raw:find("\n", 1, true)
	if (k or #raw + 1) > V.maxline then
		m.err = fail(V.inlinelength, V.maxline - 1, "Line", "expected the end of the line within " .. V.maxline .. " bytes", true)
		return 0
	elseif not k then
		return nil
	end
	local line = raw:sub(1, k - 1):gsub("\r$", "")
	local words, at, detail = cut(line)
	if not words then
		m.err = fail(V.inlinewords, at, "Line", detail, true)
		return 0
	elseif #words == 0 then
		m.err = fail(V.empty, 0, "Line", "expected at least one word, got a blank line")
		return k
	end
	m.type = BYNAME[V.inline]
	add(m, m.type.fields[1], 0, #line, k)
	return k, nil, words
end
