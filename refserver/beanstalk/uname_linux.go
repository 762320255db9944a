package beanstalk

import "syscall"

// system tells the operating system's version and the machine's kind, as uname
// does.
func system() (os, platform string) {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return "", ""
	}
	return text(u.Version[:]), text(u.Machine[:])
}

// text is a C string; its characters are signed on some machines.
func text[C int8 | uint8](s []C) string {
	var b []byte
	for _, c := range s {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
