#!/usr/bin/env python3
"""Run test cases of jobwire without jobwire, and print one JSON object with the verdict of each case.

    jobwire conform cases gearman --format json | ./run.py 127.0.0.1:4730

It runs the cases that need one connection (with a second argument N: up to N) and nothing else.
"""
import concurrent.futures, contextlib, itertools, json, os, re, select, socket, struct, sys, time

MORE, MISMATCH, numbers = -1, -2, itertools.count()  # a message may begin with the bytes, or does not

def literal(part):
    return part.get("bytes", "").encode("latin-1") * part.get("times", 1)

def number(n, form):
    return n.to_bytes(form["width"], "big") if "width" in form else b"%d" % n

class Case:
    def __init__(self, case, address, timeout):
        self.case, self.address, self.timeout = case, address, timeout
        self.values, self.owners, self.sockets, self.received = {}, {}, {}, {}

    def give(self, v):
        """Return a value to send."""
        if "now" in v:
            return number(int(time.time()) + v["now"], v)
        unique = "%s-py%x-%d" % (v["variable"][1:], os.getpid(), next(numbers))
        return self.values.setdefault(v["variable"], v.get("initial", unique).encode("latin-1"))

    def encode(self, parts):
        out = [self.give(p["value"]) if "value" in p else literal(p) for p in parts]
        for i, size in ((i, p["length"]) for i, p in enumerate(parts) if "length" in p):
            out[i] = number(sum(len(out[k]) for k in size["of"]) + size.get("plus", 0), size)
        return b"".join(out)

    def accept(self, v, value):
        """Return whether a received value fits, and set its variable."""
        text, name = value.decode("latin-1"), v.get("variable")
        fits = v.get("min_length", 0) <= len(value) <= v.get("max_length", len(value))
        fits = fits and all(re.fullmatch(p, text) for p in v.get("patterns", []))
        if not fits or any(re.search(p, text) for p in v.get("not", [])):
            return False
        if "now" in v:
            return abs((int.from_bytes(value, "big") if "width" in v else int(text)) - v["now"] - time.time()) <= 2
        if v.get("assigned") and name and self.owners.setdefault(value, name) != name:
            return False  # the server chose the same value for two things
        return name is None or self.values.setdefault(name, value) == value

    def match(self, parts, b, at=0, i=0, lengths=()):
        """Return the length of the message with which b begins, MORE or MISMATCH."""
        if i == len(parts):
            return at
        p, rest, size = parts[i], b[at:], parts[i].get("length")
        if "repeat" in p:
            n = self.attempt(parts, b, at, i + 1, lengths)
            if n == MISMATCH and (n := self.match(p["repeat"], b, at)) >= 0:
                return self.match(parts, b, n, i, lengths)
            return n
        if size:
            text = rest[:size["width"]] if "width" in size else re.match(rb"\d*", rest)[0]
            if len(text) < size["width"] if "width" in size else text == rest:
                return MORE
            n = int.from_bytes(text, "big") if "width" in size else int(text or b"-1")
            lengths += ((size["of"], n - size.get("plus", 0)),)
            return self.match(parts, b, at + len(text), i + 1, lengths)
        if "value" in p:
            v, size = p["value"], p["value"].get("width") or min((n for of, n in lengths if of[-1] == i), default=0)
            if "until" in v:
                size = rest.find(v["until"].encode("latin-1"))
                size -= v["until"] == "\n" and rest[:size].endswith(b"\r")
            if not 0 <= size <= len(rest):
                return MORE if size > 0 or "until" in v else MISMATCH
            lengths = tuple((of, left - size if i in of else left) for of, left in lengths)
            return self.match(parts, b, at + size, i + 1, lengths) if self.accept(v, rest[:size]) else MISMATCH
        wanted = literal(p) if "line_end" not in p else b"\r\n" if rest.startswith(b"\r") else b"\n"
        if rest.startswith(wanted):
            return self.match(parts, b, at + len(wanted), i + 1, lengths)
        return MORE if wanted.startswith(rest) else MISMATCH

    def attempt(self, *args):
        """Match, and keep new values of variables only if the whole message matches."""
        saved = dict(self.values), dict(self.owners)
        if (n := self.match(*args)) < 0:
            self.values, self.owners = saved
        return n

    def act(self, step, s, _):
        time.sleep(step.get("after", 0))
        if step["action"].startswith("send"):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the next step sees the end
                s.sendall(self.encode(step["message"]), socket.MSG_OOB if step["action"] == "send-urgent" else 0)
        elif step["action"] == "half-close":
            s.shutdown(socket.SHUT_WR)
        elif step["action"] in ("close", "reset"):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", step["action"] == "reset", 0))
            self.sockets.pop(step["connection"]).close()

    def expect(self, step, s, since):
        """Return the alternative that the server chose, or the reason why none fits."""
        name, closed = step["connection"], None
        all_messages = step["alternatives"] + [{"message": m} for m in step.get("ignore", [])]
        events = {a["event"]: a for a in reversed(step["alternatives"])}
        end = time.monotonic() + step.get("within", events.get("silent", {}).get("seconds", self.timeout))
        while True:
            b = self.received[name]
            found = []
            for a in all_messages:
                found.append(self.attempt(a["message"], b) if b and "message" in a else MISMATCH)
                if found[-1] >= 0:
                    break
            if found[-1] >= 0:
                self.received[name] = b[found[-1]:]
                if "event" not in a:
                    continue  # ignore the message
                return a if time.monotonic() - since >= step.get("after", 0) else "too early"
            if b and MORE not in found:
                return "late" if time.monotonic() - since > step.get("until", 1e9) else "got %r" % b[:60]
            if closed:
                del self.sockets[name]  # the next step connects again
                return events.get("closes", events.get(closed, closed))
            if not select.select([s], [], [], max(0, end - time.monotonic()))[0]:
                return events.get("silent", "nothing within the time limit")
            closed = "resets"
            with contextlib.suppress(ConnectionResetError):
                data = s.recv(1 << 16)
                self.received[name], closed = b + data, None if data else "closes"

    def run(self):
        verdict, in_case, ends = "passed", False, {-1: time.monotonic()}
        with contextlib.ExitStack() as stack:
            for i, step in enumerate(self.case["steps"]):
                name, in_case = step["connection"], in_case or "setup" not in step
                if name not in self.sockets:
                    self.sockets[name] = stack.enter_context(socket.create_connection(self.address, 5))
                    self.received[name] = b""
                do = self.expect if step["action"] == "expect" else self.act
                a = do(step, self.sockets[name], ends[step.get("since", i - 1)])
                if isinstance(a, str):
                    failed = "different" if step.get("level", self.case["level"]) == "INTERPRETATION" else "failed"
                    failed = failed if in_case and a != "late" else "inconclusive"
                    return {"verdict": failed, "note": step["text"] + ": " + a}
                verdict = "non-strict" if a and a.get("non_strict") else verdict
                ends[i] = time.monotonic()
        return {"verdict": verdict, "note": ""}

address, most, data = sys.argv[1].rsplit(":", 1), int((sys.argv + [1])[2]), json.load(sys.stdin)
cases = [c for c in data["cases"] if len(c["connections"]) <= most and not c.get("needs")]
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    results = list(pool.map(lambda c: {"id": c["id"]} | Case(c, tuple(address), data["timeout"]).run(), cases))
json.dump({"cases": results, "skipped": len(data["cases"]) - len(cases)}, sys.stdout, indent=1)
