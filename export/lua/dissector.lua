-- The dissector: finds the messages in the segments of a TCP connection and shows them.

local proto = Proto(P.name, "jobwire " .. P.title)
local fields = {
	type = ProtoField.string(P.name .. ".type", "Message type"),
	type_number = ProtoField.uint32(P.name .. ".type_number", "Number of the message type"),
	to = ProtoField.string(P.name .. ".to", "Receiver"),
	rule = ProtoField.string(P.name .. ".rule", "Violated rule"),
	response_to = ProtoField.framenum(P.name .. ".response_to", "Response to", base.NONE, frametype.REQUEST),
	response_in = ProtoField.framenum(P.name .. ".response_in", "Response in", base.NONE, frametype.RESPONSE),
	time = ProtoField.relative_time(P.name .. ".time", "Response time"),
}
for _, s in ipairs(P.shown or {}) do fields[s.key] = ProtoField[s.kind](s.filter, s.label) end
local violation = ProtoExpert.new(P.name .. ".violation", "The message violates a rule", expert.group.PROTOCOL, expert.severity.ERROR)
proto.fields, proto.experts = {}, {violation}
for _, f in pairs(fields) do table.insert(proto.fields, f) end

local KINDS = {}
for _, s in ipairs(P.shown or {}) do KINDS[s.key] = s.kind end

local stream, lost, completeness = Field.new("tcp.stream"), Field.new("tcp.analysis.lost_segment"), Field.new("tcp.completeness")
local acknowledged, nextByte = Field.new("tcp.ack"), Field.new("tcp.nxtseq")
local SYN = 1 -- in tcp.completeness
local connections, known -- by TCP stream; by frame and offset: the messages that were decoded
local passed -- a first pass has taken place; "tshark -2" without a filter has none

function proto.init() connections, known, passed = {}, {}, false end

-- PAIRING are the rules about the correspondence of requests and replies. DEPENDENT are those about messages of the server that
-- depend on their requests.
local PAIRING, DEPENDENT = {}, {}
for _, id in ipairs(P.pairing or {}) do PAIRING[id] = true end
for _, id in ipairs(P.dependent or {}) do DEPENDENT[id] = true end

local function newState() return {pending = {}, waiting = {}, ended = {}, skip = {}, exact = {}, short = {}, seen = {}, waits = {}, again = {}} end

local function connection(pinfo)
	local id = stream().value
	if not connections[id] then
		connections[id] = newState()
		connections[id].partial = completeness() == nil or completeness().value % (2 * SYN) < SYN
		connections[id].server = pinfo.match == pinfo.src_port and pinfo.match ~= pinfo.dst_port and "src" or "dst"
		connections[id].port = connections[id].server == "src" and pinfo.src_port or pinfo.dst_port
	end
	return connections[id]
end

-- decode decodes the first message in raw. If the message is incomplete, it returns nil and the number of bytes that it
-- needs, or nil if this is unknown.
local function decode(c, side, raw)
	local m, n, need = {raw = raw, spans = {}}
	if decodeBinary and (binary(raw) or not decodeText) then
		n, need = decodeBinary(c, side, raw, m)
	else
		m.ordered = true
		n, need = decodeText(c, side, raw, m)
	end
	if not n then return nil, need end
	m.size = n
	assign(c, side, m)
	if m.err then m.answers = nil end
	local rule = m.err and m.err.rule
	if PAIRING[rule] and c.short[3 - side] then c.unsure = true end -- a reply to an incomplete request
	if c.partial or c.unsure then -- the request of a reply is unknown
		m.answers = nil
		if PAIRING[rule] or side == 2 and DEPENDENT[rule] or c.partial and m.err and m.err.fatal then m.err = nil end
	end
	return m
end

local ESCAPED = {} -- bytes that are not printable
for n = 0, 255 do ESCAPED[string.char(n)] = ("\\x%02x"):format(n) end

-- printable returns a value as text, shortened.
local function printable(v)
	local text = v:sub(1, 64):gsub("[^ -~]", ESCAPED)
	return #v > 64 and text .. "..." or text
end

local function shownValue(f, v) return f.kind == "uint" and tostring(bigendian(v)) or printable(v) end

-- summary returns the type and the arguments of a message.
local function summary(m)
	local text = m.type and m.type.name or "unknown message"
	for _, s in ipairs(m.spans) do
		if s.field.key then
			local v = shownValue(s.field, s.text or value(m, s))
			text = text .. " " .. (v == "" and '""' or v:find(" ", 1, true) and '"' .. v .. '"' or v)
			if #text > 200 then return text:sub(1, 200) .. "..." end
		end
	end
	return text
end

local function number64(kind, v)
	return kind == "int64" and Int64.new(v) or UInt64.new(v)
end

local function show(tree, tvb, at, m)
	for _, s in ipairs(m.spans) do
		local f = s.field
		if f.key then
			local kind, v, range = KINDS[f.key], s.text or value(m, s), tvb(at + s.off, s.stop - s.off)
			if kind == "bytes" then
				tree:add(fields[f.key], range):set_text(f.name .. ': "' .. printable(v) .. '"')
			elseif kind == "string" then
				if s.text then tree:add(fields[f.key], range, v) else tree:add_packet_field(fields[f.key], range, ENC_UTF_8) end
			elseif f.kind == "uint" then
				tree:add(fields[f.key], range, kind == "int64" and Int64.new(tostring(bigendian(v))) or bigendian(v))
			elseif not check(f, v) or v:find("^%-?[0-9]+$") and #v < 19 then
				tree:add(fields[f.key], range, number64(kind, v))
			else
				tree:add(range, f.name .. ": " .. printable(v))
			end
		end
	end
end

-- link adds the frames of the request and of the reply.
local function link(tree, m)
	if m.asks and m.asks.reply then tree:add(fields.response_in, m.asks.reply.frame):set_generated() end
	local request = m.answers
	if request and request.frame then
		tree:add(fields.response_to, request.frame):set_generated()
		local seconds = m.time - request.time
		local whole = math.floor(seconds)
		tree:add(fields.time, NSTime(whole, math.floor((seconds - whole) * 1e9 + 0.5))):set_generated()
	end
end

-- typeRange returns the bytes that give the type of a message: its number or its first word.
local function typeRange(tvb, at, m)
	for _, s in ipairs(m.spans) do
		if s.field.kind == "code" or s.field.kind == "literal" then return tvb(at + s.off, s.stop - s.off) end
	end
	return tvb(at, 0)
end

local function display(tvb, at, tree, m, side)
	local name = m.type and m.type.name or "unknown message"
	local sub = tree:add(proto, tvb(at, m.size), P.title .. ", " .. name .. (side == 1 and " to the server" or " to the client"))
	local typed = typeRange(tvb, at, m)
	if m.type then sub:add(fields.type, typed, name) end
	if m.number then sub:add(fields.type_number, typed, m.number) end
	sub:add(fields.to, tvb(at, 0), side == 1 and "server" or "client"):set_generated()
	show(sub, tvb, at, m)
	link(sub, m)
	local err = m.err
	if err then
		sub:add(fields.rule, tvb(at, 0), err.rule):set_generated()
		sub:add_proto_expert_info(violation, ("%s: %s %s, byte %d: %s"):format(err.rule, P.rules[err.rule] or "", err.field, err.at, err.detail))
	end
end

-- remember stores a decoded message, so that it is shown again in the same way, and completes its links.
local function remember(pinfo, length, at, m)
	m.time, m.length = tonumber(pinfo.abs_ts), length
	if m.asks then m.asks.frame, m.asks.time = pinfo.number, m.time end
	if m.answers and not m.answers.reply then m.answers.reply = {frame = pinfo.number} end
	local frame = known[pinfo.number] or {}
	known[pinfo.number] = frame
	frame[at] = frame[at] or {}
	table.insert(frame[at], m)
	return m
end

-- recall returns the message that was decoded at an offset of a frame. In a later pass, Wireshark may pass fewer bytes
-- after the message than before.
local function recall(pinfo, tvb, at)
	local frame, similar = known[pinfo.number], nil
	for _, m in ipairs(frame and frame[at] or {}) do
		if m.length == tvb:len() then return m end
		if m.size and at + m.size <= tvb:len() and m.raw == tvb:raw(at, m.size) then similar = m end
	end
	return similar
end

-- A message whose missing part is longer than this, in bytes, is reassembled at once. Other messages are tried again with
-- each segment.
local LONG = 4096

-- missing returns how many bytes to ask for. Wireshark then passes either whole segments or exactly this number of bytes.
-- In the second case c.exact is set: the rest of the segment has to be asked for byte by byte until the message ends.
local function missing(c, side, have, need)
	if need and need - have > LONG then c.exact[side] = true end
	return {missing = not c.exact[side] and DESEGMENT_ONE_MORE_SEGMENT or need and need - have or 1}
end

-- incomplete reports whether bytes before a segment are missing: of its sender, or of the other side, which the sender has
-- received. The end of a connection also counts as one byte, so one byte more is not a proof. Wireshark does not pass the
-- segments in the middle of a long message.
local function incomplete(c, side)
	local ack, next, seen = acknowledged(), nextByte(), c.seen[3 - side]
	if next then c.seen[side] = next.value end
	local ahead = ack and seen and (ack.value - seen) % 2^32 or 0
	return lost() ~= nil or not c.exact[3 - side] and ahead > 1 and ahead < 2^31
end

-- take decodes the message at an offset.
local function take(c, side, tvb, at)
	local have = tvb:len() - at
	if c.ended[side] then return {skipped = true, size = have, spans = {}} end
	if c.skip[side] then
		local n = math.min(c.skip[side], have)
		c.skip[side] = n < c.skip[side] and c.skip[side] - n or nil
		return {skipped = true, size = n, spans = {}}
	end
	local m, need = decode(c, side, tvb:raw(at))
	c.short[side] = not m
	if not m then return missing(c, side, have, need) end
	c.exact[side] = false
	if m.size == 0 then
		m.size, c.ended[side] = have, not c.partial
		m.skipped = c.partial
	end
	if m.size > have then m.size, c.skip[side] = have, m.size - have end
	m.raw = m.raw:sub(1, m.size)
	return m
end

-- keep notes for which bytes a side waits, from an offset of the bytes that Wireshark has passed. If the incomplete message
-- begins in the last segment, Wireshark passes the next bytes from there on. If it begins at the end of what was passed
-- before, because only this segment has shown where the message in front of it ends, Wireshark passes all bytes again.
local function keep(c, side, tvb, at)
	local all = at > 0 and at <= (c.waits[side] or 0)
	c.again[side] = all and tvb:raw(0, at) or nil
	c.waits[side] = all and tvb:len() or tvb:len() - at
end

-- repeated returns the messages that Wireshark passes again, which were shown before, or nil.
local function repeated(c, side, tvb, at)
	local before = c.again[side]
	if at > 0 or not before or tvb:len() <= #before or tvb:raw(0, #before) ~= before then return end
	return {repeated = true, size = #before, spans = {}, raw = before}
end

-- INFO is the number of bytes in the column Info after which messages are only counted, unless they violate a rule.
local INFO = 200

local previous -- the frame that was shown last

function proto.dissector(tvb, pinfo, tree)
	local c, at, texts, length, more = connection(pinfo), 0, {}, 0, 0
	local side = pinfo.dst_port == c.port and 1 or 2
	passed = passed or not pinfo.visited
	local again = pinfo.visited and passed
	if not again and incomplete(c, side) then
		for k, v in pairs(newState()) do
			if k ~= "seen" then c[k] = v end
		end
		c.partial = true
	end
	pinfo.cols.protocol = P.title
	while at < tvb:len() do
		local m = recall(pinfo, tvb, at)
		if not m and not again then m = remember(pinfo, tvb:len(), at, repeated(c, side, tvb, at) or take(c, side, tvb, at)) end
		if not m then break end -- in a later pass, Wireshark also passes single segments of a longer message
		if m.missing then
			if not again then keep(c, side, tvb, at) end
			pinfo.desegment_offset, pinfo.desegment_len = at, m.missing
			break
		end
		if m.repeated then
			-- it was shown with the segment that has shown its end
		elseif m.skipped then
			tree:add(proto, tvb(at, m.size), P.title .. ", bytes that are not decoded")
		else
			display(tvb, at, tree, m, side)
			if length < INFO or m.err then
				texts[#texts + 1] = summary(m) .. (m.err and " [" .. m.err.rule .. "]" or "")
				length = length + #texts[#texts]
			else
				more = more + 1
			end
		end
		at = at + m.size
	end
	if at >= tvb:len() then c.waits[side], c.again[side] = nil, nil end
	if more > 0 then texts[#texts + 1] = more .. " more" end
	if #texts > 0 then
		pinfo.cols.info:set((previous == pinfo.number and "; " or "") .. table.concat(texts, "; "))
		pinfo.cols.info:fence()
		previous = pinfo.number
	end
end

DissectorTable.get("tcp.port"):add(P.port, proto)
