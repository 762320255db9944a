package refserver

// input is what reading from a socket needs. It belongs to the connection's own
// goroutine.
type input struct {
	arrive  func(fd uintptr) bool // one attempt to read, made once to save allocations
	got     int
	gotFail error
}

// receive reads what has come, or waits until something does.
func (c *Conn) receive() (int, error) {
	if c.arrive == nil || c.top == len(c.buf) {
		return c.nc.Read(c.buf[c.top:])
	}
	c.got, c.gotFail = 0, nil
	if err := c.raw.Read(c.arrive); err != nil {
		return 0, err
	}
	return c.got, c.gotFail
}
