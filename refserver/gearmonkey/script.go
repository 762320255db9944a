package gearmonkey

import (
	"regexp"
	"strconv"
	"strings"
)

var scriptCommands = map[string]command{
	"load":   {arity: 3},
	"exists": {arity: -3, run: scriptsExist},
	"flush":  {arity: -2},
	"kill":   {arity: 2, run: func(c *call) { c.fail("NOTBUSY No scripts in execution right now.") }},
}

// scriptsExist handles SCRIPT EXISTS. The hashes are not case-sensitive.
func scriptsExist(c *call) {
	words := []string{"SCRIPT", "EXISTS"}
	for _, sha := range c.words[2:] {
		words = append(words, strings.ToLower(sha))
	}
	c.toMiniredis(words...)
}

// eval handles EVAL, which stores the script like SCRIPT LOAD.
func eval(c *call) {
	if !c.checkKeyCount() {
		return
	}
	reply := c.ask("SCRIPT", "LOAD", c.words[1])
	if reply[0] == '-' {
		c.out = append(c.out, reply...)
		return
	}
	sha, _ := cutBulk(reply)
	c.runScript(sha)
}

// evalSHA handles EVALSHA.
func evalSHA(c *call) {
	if sha := c.words[1]; len(sha) != 40 {
		c.fail("NOSCRIPT No matching script. Please use EVAL.")
	} else if c.checkKeyCount() {
		c.runScript(strings.ToLower(sha))
	}
}

// checkKeyCount checks numkeys of "EVAL script numkeys key... arg..." and of EVALSHA. If it is not valid, it replies with
// an error and returns false.
func (c *call) checkKeyCount() bool {
	const firstKey = 3 // index of the first key
	n, err := strconv.ParseInt(c.words[2], 10, 64)
	switch {
	case err != nil:
		c.fail("ERR value is not an integer or out of range")
	case n > int64(len(c.words)-firstKey):
		c.fail("ERR Number of keys can't be greater than number of args")
	case n < 0:
		c.fail("ERR Number of keys can't be negative")
	default:
		return true
	}
	return false
}

// runScript executes the stored script with this SHA-1 hash, in the database of the connection, and appends its reply.
// It converts an error of miniredis to the error of Redis.
func (c *call) runScript(sha string) {
	name := "EVALSHA"
	if strings.HasSuffix(c.command.name, "_ro") {
		name = "EVALSHA_RO"
	}
	c.m.scriptDB = c.peer.db
	c.m.failure = ""
	reply := c.ask(append([]string{name, sha}, c.words[2:]...)...)
	if text, ok := strings.CutPrefix(reply, compiling); ok {
		c.fail(c.scriptError(sha, text))
		return
	}
	c.out = append(c.out, reply...)
}

// compiling is the prefix of every error of miniredis that ends a script.
const compiling = "-ERR Error compiling script (new function): "

// scriptErrorText matches an error text, whether Redis's script library raised it, and the line of the script.
var scriptErrorText = regexp.MustCompile(`^:\d+: (.*?)( script: [0-9a-f]{40}, &c\.?)? stack traceback:.* :(\d+): in main chunk`)

// scriptError returns the error that ended a script in the format of Redis. If a command in the script failed, this
// is the error of the command.
func (c *call) scriptError(sha, text string) string {
	parts := scriptErrorText.FindStringSubmatch(text)
	if parts == nil {
		return compiling[1:] + strings.TrimSpace(text)
	}
	says, library, line := parts[1], parts[2] != "", parts[3]
	switch where := " script: " + sha + ", on @user_script:" + line + "."; {
	case c.m.failure != "" && says == c.m.failure:
		return says + where
	case library:
		return "ERR " + says + where
	default:
		return "ERR user_script:" + line + ": " + says + where
	}
}
