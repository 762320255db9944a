// Package language holds the tests of the project's wording: words that hide what
// a sentence says are counted in everything a user reads, in comments and in
// identifiers. testdata/words.txt lists them with what to write instead.
package language
