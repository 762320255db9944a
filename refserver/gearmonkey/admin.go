package gearmonkey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// databases is the number of databases, the default of Redis.
const databases = 16

// version is the version of Redis that the server reports.
const version = "7.0.15"

// ping handles PING. On a RESP2 connection that subscribes to channels, the reply is an array, as from Redis.
func ping(c *call) {
	text := ""
	switch {
	case len(c.words) > 2:
		c.fail(wrongNumber("ping"))
		return
	case len(c.words) == 2:
		text = c.words[1]
	}
	switch {
	case c.peer.subscribes() && !c.peer.resp3 && !c.script:
		c.header('*', 2)
		c.bulk("pong")
		c.bulk(text)
	case len(c.words) == 1:
		c.out = append(c.out, "+PONG\r\n"...)
	default:
		c.bulk(text)
	}
}

// hello selects a protocol version.
func hello(c *call) {
	resp3 := c.peer.resp3
	if len(c.words) > 1 {
		n, err := strconv.Atoi(c.words[1])
		switch {
		case err != nil:
			c.fail("ERR Protocol version is not an integer or out of range")
			return
		case n != 2 && n != 3:
			c.fail("NOPROTO unsupported protocol version")
			return
		}
		resp3 = n == 3
	}
	name := c.peer.name
	for i := 2; i < len(c.words); i++ {
		more := len(c.words) - 1 - i
		switch option := strings.ToUpper(c.words[i]); {
		case option == "AUTH" && more >= 2:
			if !c.logIn(c.words[i+1], c.words[i+2]) {
				return
			}
			i += 2
		case option == "SETNAME" && more >= 1:
			name = c.words[i+1]
			if !printable(name) {
				c.fail(badName)
				return
			}
			i++
		default:
			c.fail("ERR Syntax error in HELLO option '" + c.words[i] + "'")
			return
		}
	}
	if c.m.mustLogIn(c.peer) {
		c.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.peer.name, c.peer.resp3 = name, resp3

	if resp3 {
		c.header('%', 7)
	} else {
		c.header('*', 14)
	}
	c.bulk("server")
	c.bulk("redis")
	c.bulk("version")
	c.bulk(version)
	c.bulk("proto")
	if resp3 {
		c.number(3)
	} else {
		c.number(2)
	}
	c.bulk("id")
	c.number(int64(c.peer.conn.ID()))
	c.bulk("mode")
	c.bulk("standalone")
	c.bulk("role")
	c.bulk("master")
	c.bulk("modules")
	c.header('*', 0)
}

const (
	defaultUser = "default"
	noAuth      = "NOAUTH Authentication required."
)

// auth handles AUTH. Without [Machine.RequireLogin] there is only the default user, without a password.
func auth(c *call) {
	user, password := defaultUser, c.words[len(c.words)-1]
	switch {
	case len(c.words) > 3:
		c.fail("ERR syntax error")
		return
	case len(c.words) == 3:
		user = c.words[1]
	case c.m.password == "":
		c.fail("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
		return
	}
	if c.logIn(user, password) {
		c.ok()
	}
}

// logIn checks a user name and a password, and sends an error if they are wrong.
func (c *call) logIn(user, password string) bool {
	m := c.m
	if m.password == "" && user == defaultUser || m.password != "" && user == m.user && password == m.password {
		c.peer.loggedIn = true
		return true
	}
	c.fail("WRONGPASS invalid username-password pair or user is disabled.")
	return false
}

// mustLogIn reports whether a connection must log in before it sends other commands.
func (m *Machine) mustLogIn(p *peer) bool { return m.password != "" && !p.loggedIn }

// selectDB handles SELECT. In a script it changes the database of the script only, otherwise that of the connection.
func selectDB(c *call) {
	n, err := strconv.Atoi(c.words[1])
	switch {
	case err != nil:
		c.fail("ERR value is not an integer or out of range")
		return
	case n < 0 || n >= databases:
		c.fail("ERR DB index is out of range")
		return
	}
	if c.script {
		c.m.scriptDB = n
	} else {
		c.peer.db = n
	}
	c.again()
}

// reset restores the initial state of a connection.
func reset(c *call) {
	p := c.peer
	p.endTransaction(c)
	c.m.leaveAll(p)
	p.db, p.resp3, p.name, p.replyMode, p.loggedIn = 0, false, "", replyOn, false
	c.ask("SELECT", "0")
	c.out = append(c.out, "+RESET\r\n"...)
}

// quit sends a reply; later requests are not read.
func quit(c *call) {
	c.peer.leaving = true
	c.ok()
}

// shutdown stops the server without a reply.
func shutdown(c *call) {
	for _, w := range c.words[1:] {
		if !slices.Contains([]string{"SAVE", "NOSAVE", "NOW", "FORCE"}, strings.ToUpper(w)) {
			c.fail("ERR syntax error")
			return
		}
	}
	c.silent = true
	c.peer.conn.Shutdown(false)
}

func sendTime(c *call) {
	now := time.Now()
	c.header('*', 2)
	c.bulk(strconv.FormatInt(now.Unix(), 10))
	c.bulk(strconv.Itoa(now.Nanosecond() / 1000))
}

var clientCommands = map[string]command{
	"id":      {arity: 2, run: func(c *call) { c.number(int64(c.peer.conn.ID())) }},
	"getname": {arity: 2, run: clientName},
	"setname": {arity: 3, run: setClientName},
	"reply":   {arity: 3, run: clientReply},
	"info":    {arity: 2, run: func(c *call) { c.bulk(c.peer.line()) }},
	"list":    {arity: -2, run: listClients},
	"unblock": {arity: -3, run: unblock},
}

const badName = "ERR Client names cannot contain spaces, newlines or special characters."

func printable(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

func clientName(c *call) {
	if c.peer.name == "" {
		c.null()
	} else {
		c.bulk(c.peer.name)
	}
}

func setClientName(c *call) {
	if !printable(c.words[2]) {
		c.fail(badName)
		return
	}
	c.peer.name = c.words[2]
	c.ok()
}

// clientReply handles CLIENT REPLY, which turns the replies of the connection on or off, or skips the reply to the next
// command. Only ON has a reply.
func clientReply(c *call) {
	switch p := c.peer; strings.ToUpper(c.words[2]) {
	case "ON":
		p.replyMode = replyOn
		c.ok()
	case "OFF":
		p.replyMode = silence
	case "SKIP":
		if p.replyMode == replyOn {
			p.replyMode = skip
		}
	default:
		c.fail("ERR syntax error")
	}
}

// line describes a connection as in CLIENT LIST, with the values that are known here.
func (p *peer) line() string {
	flags, multi, version := "", -1, 2
	if p.subscribes() {
		flags += "P"
	}
	if p.wait != nil {
		flags += "b"
	}
	if p.tx != nil {
		flags += "x"
		multi = len(p.tx.queued)
	}
	if flags == "" {
		flags = "N"
	}
	if p.resp3 {
		version = 3
	}
	return fmt.Sprintf("id=%d addr=%s name=%s flags=%s db=%d sub=%d psub=%d multi=%d user=default resp=%d\n",
		p.conn.ID(), p.conn.RemoteIP(), p.name, flags, p.db, len(p.channels), len(p.patterns), multi, version)
}

// byID returns the connections in the order in which they were opened.
func (m *Machine) byID() []*peer {
	all := make([]*peer, 0, len(m.peers))
	for p := range m.peers {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *peer) int { return int(a.conn.ID()) - int(b.conn.ID()) })
	return all
}

func listClients(c *call) {
	var b strings.Builder
	for _, p := range c.m.byID() {
		b.WriteString(p.line())
	}
	c.bulk(b.String())
}

// unblock ends the wait of another connection with a timeout or an error.
func unblock(c *call) {
	id, err := strconv.ParseInt(c.words[2], 10, 64)
	withError := len(c.words) == 4 && strings.EqualFold(c.words[3], "ERROR")
	switch {
	case err != nil:
		c.fail("ERR value is not an integer or out of range")
		return
	case len(c.words) > 4 || len(c.words) == 4 && !withError && !strings.EqualFold(c.words[3], "TIMEOUT"):
		c.fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		return
	}
	for p := range c.m.peers {
		if int64(p.conn.ID()) != id || p.wait == nil {
			continue
		}
		c.m.forget(p.wait)
		if withError {
			p.answer(c.m, []byte("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"))
		} else {
			p.answer(c.m, null("*-1\r\n", p.resp3))
		}
		c.number(1)
		return
	}
	c.number(0)
}

// describe handles COMMAND, but returns only the number and the names of the commands.
func describe(c *call) {
	what := ""
	if len(c.words) > 1 {
		what = strings.ToLower(c.words[1])
	}
	switch what {
	case "count":
		c.number(int64(len(commands)))
	case "list":
		names := make([]string, 0, len(commands))
		for name := range commands {
			names = append(names, name)
		}
		slices.Sort(names)
		c.header('*', int64(len(names)))
		for _, name := range names {
			c.bulk(name)
		}
	case "", "info", "docs":
		c.header('*', 0)
	default:
		c.fail("ERR unknown subcommand '" + c.words[1] + "'. Try COMMAND HELP.")
	}
}

// sections are the sections of INFO, in this order.
var sections = []struct {
	name string
	text func(m *Machine) string
}{
	{"Server", func(m *Machine) string {
		return fmt.Sprintf("redis_version:%s\r\nredis_mode:standalone\r\nserver_name:jobwire\r\nuptime_in_seconds:%d\r\n",
			version, int(time.Since(m.start).Seconds()))
	}},
	{"Clients", func(m *Machine) string {
		blocked := 0
		for p := range m.peers {
			if p.wait != nil {
				blocked++
			}
		}
		return fmt.Sprintf("connected_clients:%d\r\nblocked_clients:%d\r\n", len(m.peers), blocked)
	}},
	{"Stats", func(m *Machine) string {
		return fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\n", m.accepted, m.handled)
	}},
}

// info handles INFO: it returns the sections that the arguments name, or all of them.
func info(c *call) {
	var b strings.Builder
	for _, s := range sections {
		wanted := len(c.words) == 1
		for _, w := range c.words[1:] {
			w = strings.ToLower(w)
			wanted = wanted || w == strings.ToLower(s.name) || w == "all" || w == "default" || w == "everything"
		}
		if !wanted {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + s.name + "\r\n" + s.text(c.m))
	}
	c.bulk(b.String())
}
