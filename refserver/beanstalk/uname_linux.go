package beanstalk

import "syscall"

// system returns the version of the operating system and the hardware type, like uname.
func system() (os, platform string) {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return "", ""
	}
	return text(u.Version[:]), text(u.Machine[:])
}

// text converts a C string. Its characters are signed on some platforms.
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
