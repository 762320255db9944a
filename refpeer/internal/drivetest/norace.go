//go:build !race

package drivetest

const variantsApart = 1 // all variants are tested
