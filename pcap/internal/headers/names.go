package headers

import (
	_ "embed"
	"fmt"
	"strings"
)

// Header identifies a header that is not understood.
type Header struct {
	layer  string // what the number is: a link type, an EtherType, ...
	number uint32
}

// IsLink reports whether the header is that of the link.
func (h Header) IsLink() bool { return h.layer == linkType }

// String returns the number and, if it is known, the name of a header.
func (h Header) String() string {
	number := fmt.Sprint(h.number)
	if h.layer == etherType || h.layer == "PPP protocol" || h.layer == "GRE flags" {
		number = fmt.Sprintf("0x%04x", h.number)
	}
	if _, name, ok := strings.Cut(headerNames, "\n"+h.layer+" "+number+" "); ok {
		name, _, _ = strings.Cut(name, "\n")
		return fmt.Sprintf("%s %s (%s)", h.layer, number, name)
	}
	return h.layer + " " + number
}

// headerNames are the names of link types at https://www.tcpdump.org/linktypes.html, and of other numbers at IANA: lines
// of a layer, a number and a name.
//
//go:embed names.txt
var headerNames string
