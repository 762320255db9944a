//go:build race

package drivetest

// variantsApart is the distance of the variants that are tested: the race detector makes them several times slower. All are
// tested without it.
const variantsApart = 6
