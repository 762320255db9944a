package gearmonkey

import (
	"slices"
	"strconv"
)

// fewValues is the maximum number of values that miniredis prepends to a list itself.
const fewValues = 8

// prepend handles LPUSH and LPUSHX. miniredis copies the list for each value. Many values are therefore
// appended instead, followed by the previous elements, which are then removed from the front.
func prepend(c *call) {
	list, values := c.words[1], c.words[2:]
	length := c.ask("LLEN", list)
	oldLen := integer(length)
	if len(values) <= fewValues || length[0] != ':' || c.command.name == "lpushx" && oldLen == 0 {
		c.again()
		return
	}
	words := append([]string{"RPUSH", list}, values...)
	slices.Reverse(words[2:])
	elements := c.ask("LRANGE", list, "0", "-1")
	_, used := numberLine(elements)
	for rest := elements[used:]; rest != ""; {
		var element string
		element, rest = cutBulk(rest)
		words = append(words, element)
	}
	c.ask(words...)
	if oldLen > 0 {
		c.ask("LTRIM", list, strconv.FormatInt(oldLen, 10), "-1")
	}
	c.number(oldLen + int64(len(values)))
}
