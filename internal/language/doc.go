// Package language tests the wording of the project. A test fails if text for users, a comment or
// an identifier contains one of the words in testdata/words.txt, which make sentences hard to
// understand. The file says what to write instead. Another test prints random sentences, so
// that a reader can check whether they are clear.
package language
