package reduce

import (
	"bytes"
	"slices"
	"testing"
)

func never() bool { return false }

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// TestList tests that List finds the smallest list for which the condition holds, with few calls, and removes nothing
// if the condition never holds or the time is over.
func TestList(t *testing.T) {
	for _, need := range [][]int{{0}, {99}, {50}, {3, 4}, {0, 99}, {1, 31, 77, 78}, {10, 20, 30, 40, 50, 60}} {
		calls := 0
		holds := func(list []int) bool {
			calls++
			return !slices.ContainsFunc(need, func(n int) bool { return !slices.Contains(list, n) })
		}
		if got := List(numbers(100), never, holds); !slices.Equal(got, need) || calls > 400 {
			t.Errorf("expected %v, got %v after %d calls", need, got, calls)
		}
	}
	if got := List(numbers(9), never, func([]int) bool { return false }); len(got) != 9 {
		t.Errorf("removed elements although the condition does not hold: %v", got)
	}
	if got := List(numbers(9), func() bool { return true }, func([]int) bool { return true }); len(got) != 9 {
		t.Errorf("removed elements after the end: %v", got)
	}
}

// TestPairs tests that Pairs removes elements that can be removed only together.
func TestPairs(t *testing.T) {
	even := func(list []int) bool {
		sum := 0
		for _, n := range list {
			sum += n
		}
		return sum%2 == 0 && slices.Contains(list, 2)
	}
	if got := Pairs([]int{1, 2, 3, 4, 5, 7}, never, even); len(got) != 2 || !even(got) {
		t.Errorf("expected two elements, got %v", got)
	}
}

// TestBytes tests that Bytes finds the shortest and simplest value for which the condition holds.
func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		value, result string
		holds         func([]byte) bool
	}{
		{"abc", "", func([]byte) bool { return true }},
		{"abc", "a", func(b []byte) bool { return len(b) > 0 }},
		{"abcdefghij", "xxxxxxx", func(b []byte) bool { return len(b) >= 7 }},
		{"--key--", "key", func(b []byte) bool { return bytes.Contains(b, []byte("key")) }},
		{"q", "q", func(b []byte) bool { return string(b) == "q" }},
		{"", "", func([]byte) bool { return true }},
	} {
		if got := Bytes([]byte(tt.value), never, tt.holds); string(got) != tt.result {
			t.Errorf("%q: expected %q, got %q", tt.value, tt.result, got)
		}
	}
}
