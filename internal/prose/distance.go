package prose

// Distance returns the edit distance of two words: the number of insertions, deletions and replacements. Of words with
// more than 64 bytes it returns the length of the longer one.
func Distance(a, b string) int {
	if longer := max(len(a), len(b)); longer > 64 {
		return longer
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
