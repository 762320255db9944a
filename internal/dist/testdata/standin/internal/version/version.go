// Package version has the variables that dist sets.
package version

var Number, commit string

func String() string { return Number + " " + commit }
