// Package metrics serves the figures of a run in the OpenMetrics text format, version 1.0
// (https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md), which Prometheus reads.
package metrics

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobwire/internal/version"
)

// Family is a metric with its samples.
type Family struct {
	Name    string // without the suffix _total of a counter
	Counter bool   // the values only increase; otherwise the metric is a gauge
	Unit    string // the last part of the name, such as "seconds"; "": none
	Help    string
	Samples []Sample
}

// Sample is a value. Labels are the names of labels, each followed by its value.
type Sample struct {
	Value  float64
	Labels []string
}

// One returns the samples of a metric without labels.
func One(value float64) []Sample { return []Sample{{Value: value}} }

// contentType is the media type of the format.
const contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// Server serves the last figures that Set received, at the path /metrics.
type Server struct {
	http http.Server
	addr string

	mu   sync.Mutex
	text []byte
}

// Listen starts a server on an address: HOST:PORT, or a port, which is one of 127.0.0.1. Port 0 is a free port.
func Listen(addr string) (*Server, error) {
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{addr: ln.Addr().String()}
	s.Set(nil)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.serve)
	s.http.Handler, s.http.ReadHeaderTimeout = mux, 10*time.Second
	go s.http.Serve(ln)
	return s, nil
}

// Usage describes the flag with the address for [Listen].
const Usage = "serve the figures of the run at http://`ADDR`/metrics in the OpenMetrics format, which Prometheus reads: " +
	"HOST:PORT, or a port of 127.0.0.1 (0: a free port)"

// URL returns the address of the metrics.
func (s *Server) URL() string { return "http://" + s.addr + "/metrics" }

// Set replaces the figures. It does nothing if s is nil.
func (s *Server) Set(all []Family) {
	if s == nil {
		return
	}
	text := appendText(nil, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}

// Close ends the server. It does nothing if s is nil.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	return s.http.Close()
}

func (s *Server) serve(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	text := s.text
	s.mu.Unlock()
	w.Header().Set("Content-Type", contentType)
	w.Write(text)
}

// escape escapes help texts and values of labels.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// appendText appends the metrics, and one about the version of jobwire, in the text format.
func appendText(dst []byte, all []Family) []byte {
	dst = append(dst, "# TYPE jobwire_build info\n# HELP jobwire_build Version of jobwire.\n"...)
	dst = fmt.Appendf(dst, "jobwire_build_info{version=\"%s\"} 1\n", escape.Replace(version.Get().Version))
	for _, f := range all {
		kind, suffix := "gauge", ""
		if f.Counter {
			kind, suffix = "counter", "_total"
		}
		dst = fmt.Appendf(dst, "# TYPE %s %s\n", f.Name, kind)
		if f.Unit != "" {
			dst = fmt.Appendf(dst, "# UNIT %s %s\n", f.Name, f.Unit)
		}
		dst = fmt.Appendf(dst, "# HELP %s %s\n", f.Name, escape.Replace(f.Help))
		for _, s := range f.Samples {
			dst = append(append(dst, f.Name...), suffix...)
			for i := 0; i < len(s.Labels); i += 2 {
				dst = fmt.Appendf(dst, `%c%s="%s"`, "{,"[min(i, 1)], s.Labels[i], escape.Replace(s.Labels[i+1]))
			}
			if len(s.Labels) > 0 {
				dst = append(dst, '}')
			}
			dst = append(append(dst, ' '), strconv.FormatFloat(s.Value, 'g', -1, 64)...)
			dst = append(dst, '\n')
		}
	}
	return append(dst, "# EOF\n"...)
}

// Announce prints where the metrics are.
func (s *Server) Announce(w io.Writer) { fmt.Fprintf(w, "jobwire: metrics at %s\n", s.URL()) }
