// Package connect has the arguments and flags of commands about a protocol, a transcript, a target and the connections
// to it or from its clients.
package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/version"
)

// Environment variables with the login, and the one of browsers and curl with the name of a key log.
const (
	UserVariable     = "JOBWIRE_USER"
	PasswordVariable = "JOBWIRE_PASSWORD"
	KeyLogVariable   = "SSLKEYLOGFILE"
)

// connectFlags has the values of the flags about connections to a server.
type connectFlags struct {
	tls        bool
	files      transport.Files
	serverName string
	insecure   bool
	keyLog     keyLog
	loginFile  string

	dialer *transport.Dialer // set by check

	// Warnings is set by commands whose clients may send a login themselves. A missing login is then not an error, but a
	// warning, which is written here.
	Warnings     io.Writer
	loginChecked atomic.Bool // checkLogin has returned nil
	LoginMissing atomic.Bool // checkLogin has written a warning
}

// ConnectionGroup is the group in which the help lists the flags.
var ConnectionGroup = cli.FlagGroup{Title: "Connection",
	Names: "tls tls-ca tls-cert tls-key tls-server-name tls-insecure tls-keylog login-file"}

// add defines the flags for TLS and for the login on a command that connects to a server.
func (c *connectFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&c.tls, "tls", false, "connect to the server with TLS; the other --tls flags imply it")
	f.StringVar(&c.files.CA, "tls-ca", "", "`FILE` with the certificates of the certificate authorities to trust, in PEM format (default: those of the system)")
	f.StringVar(&c.files.Cert, "tls-cert", "", "`FILE` with the client certificate, in PEM format")
	f.StringVar(&c.files.Key, "tls-key", "", "`FILE` with the key of the client certificate, in PEM format")
	f.StringVar(&c.serverName, "tls-server-name", "",
		"`NAME` in the certificate of the server (default: the host of the address)")
	f.BoolVar(&c.insecure, "tls-insecure", false, "do not check the certificate of the server")
	f.Var(&c.keyLog, "tls-keylog", "`FILE` to which to append the keys of TLS connections, for decode --tls-keys (default: $"+KeyLogVariable+")")
	f.StringVar(&c.loginFile, "login-file", "", "`FILE` with the password, or with the user name and the password on two lines (default: $"+UserVariable+" and $"+PasswordVariable+")")
}

// words returns the flags that were set as words of a command line.
func (c *connectFlags) words() []string {
	if c == nil {
		return nil
	}
	var words []string
	if c.tls {
		words = append(words, "--tls")
	}
	if c.insecure {
		words = append(words, "--tls-insecure")
	}
	for _, f := range [][2]string{{"--tls-ca", c.files.CA}, {"--tls-cert", c.files.Cert}, {"--tls-key", c.files.Key},
		{"--tls-server-name", c.serverName}, {"--tls-keylog", c.keyLog.name}, {"--login-file", c.loginFile}} {
		if f[1] != "" {
			words = append(words, f[0], f[1])
		}
	}
	return words
}

// check reads the files of the flags and sets the dialer. builtin is set if the target is the built-in server, to which
// connections always use TCP without TLS and without a login.
func (c *connectFlags) check(s *catalog.Entry, builtin bool) error {
	if c == nil || c.dialer != nil {
		return nil
	}
	if builtin {
		if words := c.words(); len(words) > 0 {
			return fmt.Errorf("%s needs --addr or --exec: connections to the built-in server use no TLS and no login", words[0])
		}
		return nil
	}
	d := new(transport.Dialer)
	if c.tls || c.insecure || c.serverName != "" || c.keyLog.name != "" || c.files != (transport.Files{}) {
		config, err := c.files.Client()
		if err != nil {
			return err
		}
		config.ServerName, config.InsecureSkipVerify = c.serverName, c.insecure
		if err := c.keyLog.open(config); err != nil {
			return err
		}
		d.TLS = config
	}
	credentials := transport.Credentials{User: os.Getenv(UserVariable), Password: os.Getenv(PasswordVariable)}
	switch {
	case c.loginFile != "" && s.Login == nil:
		return fmt.Errorf("--login-file: %s has no login", s.Protocol.Title)
	case c.loginFile != "":
		var err error
		if credentials, err = transport.ReadCredentials(c.loginFile); err != nil {
			return fmt.Errorf("--login-file: %w", err)
		}
	}
	if credentials.Password != "" && s.Login != nil {
		d.Login = func(nc net.Conn) error { return login(s, nc, credentials) }
	}
	c.dialer = d
	return nil
}

// checkLoginTime is the time in which the server must reply to checkLogin.
const checkLoginTime = 5 * time.Second

// checkLogin returns an error if the server refuses TLS or the login, if it requires a login and the flags and the
// environment give none, or if no connection opens. It connects to the first server only: programs that are started
// again have the same command line.
func (c *connectFlags) checkLogin(ctx context.Context, s *catalog.Entry, t target.Target) error {
	if c.dialer == nil || c.dialer.TLS == nil && s.Login == nil || c.loginChecked.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkLoginTime)
	defer cancel()
	nc, err := target.Dial(ctx, t)
	if err != nil {
		return err
	}
	defer transport.Leave(nc)
	if s.Login == nil || c.dialer.Login != nil {
		c.loginChecked.Store(true)
		return nil
	}
	nc.SetDeadline(time.Now().Add(checkLoginTime))
	if err := s.Login(nc, "", ""); err != nil {
		err = &target.Error{Target: t.String(), Reason: "the server requires a login", Err: fmt.Errorf(
			"%w: set $%s and, if the server has users, $%s, or add --login-file", err, PasswordVariable, UserVariable)}
		if c.Warnings == nil {
			return err
		}
		c.LoginMissing.Store(true)
		fmt.Fprintf(c.Warnings, "jobwire: %v\n", err)
	}
	c.loginChecked.Store(true)
	return nil
}

// login logs in. The error never contains the password.
func login(s *catalog.Entry, nc net.Conn, c transport.Credentials) error {
	err := s.Login(nc, c.User, c.Password)
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(err.Error(), c.Password, "***")
	return fmt.Errorf("cannot log in: %s: check $%s and $%s, or --login-file", text, UserVariable, PasswordVariable)
}

// keyLog is a file to which connections append their keys. It is the value of the flag with its name. Its methods
// may be called concurrently after open.
type keyLog struct {
	name   string
	file   *os.File // open until the process ends: connections may end in any order
	failed atomic.Pointer[error]
}

func (k *keyLog) String() string     { return k.name }
func (k *keyLog) Set(s string) error { k.name = s; return nil }
func (k *keyLog) Type() string       { return "string" }

// open makes connections append their keys to the named file, or to that of $SSLKEYLOGFILE.
func (k *keyLog) open(config *tls.Config) error {
	name := k.name
	if name == "" {
		name = os.Getenv(KeyLogVariable)
	}
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil { // a comment shows whether keys can be written
		_, err = fmt.Fprintf(f, "# jobwire %s\n", version.Get())
	}
	if err != nil {
		return fmt.Errorf("--tls-keylog: %w", err)
	}
	k.file, config.KeyLogWriter = f, k
	return nil
}

// Write appends to the file. After an error, it writes nothing more. It never returns the error, because the connection
// would then fail as if the server had refused it.
func (k *keyLog) Write(b []byte) (int, error) {
	if k.failed.Load() == nil {
		if _, err := k.file.Write(b); err != nil {
			k.failed.CompareAndSwap(nil, &err)
		}
	}
	return len(b), nil
}

// KeyLogError returns the error because of which keys of connections of a command are missing in the key log, or nil.
func KeyLogError(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("tls-keylog")
	if f == nil {
		return nil
	}
	text, _ := f.Value.(cli.TextValue)
	k, ok := text.Value.(*keyLog)
	if !ok {
		return nil
	}
	if err := k.failed.Load(); err != nil {
		return fmt.Errorf("--tls-keylog: %w", *err)
	}
	return nil
}

// ListenFlags has the values of the flags about connections from clients and workers.
type ListenFlags struct {
	Addr   string
	files  transport.Files
	prefix string
}

// Add adds --listen, and flags with the names PREFIX-cert, PREFIX-key and PREFIX-client-ca.
func (l *ListenFlags) Add(cmd *cobra.Command, prefix, usage string) {
	f := cmd.Flags()
	l.prefix = prefix
	f.StringVar(&l.Addr, "listen", "", usage)
	f.StringVar(&l.files.Cert, prefix+"-cert", "",
		"accept only TLS connections, with the certificate in `FILE`, in PEM format")
	f.StringVar(&l.files.Key, prefix+"-key", "", "`FILE` with the key of the certificate, in PEM format")
	f.StringVar(&l.files.CA, prefix+"-client-ca", "",
		"require client certificates that are signed by a certificate authority in `FILE`, in PEM format")
}

// Listen listens on the address of --listen, or on addr without it. Errors are errors of usage.
func (l *ListenFlags) Listen(addr string) (net.Listener, error) {
	if l.Addr != "" {
		addr = l.Addr
	}
	var config *tls.Config
	if l.files != (transport.Files{}) {
		var err error
		if config, err = l.files.Server(); err == nil && len(config.Certificates) == 0 {
			err = errors.New("TLS connections need a certificate")
		}
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--%s-cert, --%s-key: %w", l.prefix, l.prefix, err))
		}
	}
	ln, err := transport.Listen(addr, config)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("cannot listen: %w; --listen selects another address", err))
	}
	return ln, nil
}
