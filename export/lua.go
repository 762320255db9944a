package export

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// appendLua appends a value as a Lua expression. Fields of structs have their names in small letters; fields and
// elements of maps with the zero value are omitted.
func appendLua(b *strings.Builder, v any, depth int) { appendValue(b, reflect.ValueOf(v), depth) }

// appendValue appends a value as a Lua expression and follows pointers. Maps are written in the order of their keys, so
// that the output is always the same.
func appendValue(b *strings.Builder, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Invalid:
		b.WriteString("false")
	case reflect.Pointer, reflect.Interface:
		appendValue(b, v.Elem(), depth)
	case reflect.String:
		appendString(b, v.String())
	case reflect.Struct:
		t := v.Type()
		appendTable(b, depth, t.NumField(), func(i int) (string, reflect.Value) {
			return strings.ToLower(t.Field(i).Name), v.Field(i)
		})
	case reflect.Map:
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
		appendTable(b, depth, len(keys), func(i int) (string, reflect.Value) {
			k := keys[i]
			if k.Kind() == reflect.Uint8 {
				return string(rune(k.Uint())), v.MapIndex(k)
			}
			return k.String(), v.MapIndex(k)
		})
	case reflect.Slice, reflect.Array:
		b.WriteString("{")
		for i := range v.Len() {
			if i > 0 {
				b.WriteString(",")
			}
			space(b, depth, i == 0)
			appendValue(b, v.Index(i), depth+1)
		}
		b.WriteString("}")
	default:
		fmt.Fprint(b, v.Interface())
	}
}

// appendTable appends a table with n entries.
func appendTable(b *strings.Builder, depth, n int, entry func(int) (string, reflect.Value)) {
	b.WriteString("{")
	first := true
	for i := range n {
		key, v := entry(i)
		if !v.CanInterface() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
			continue
		}
		if !first {
			b.WriteString(",")
		}
		space(b, depth, first)
		first = false
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") == "" && key != "end" && key != "repeat" {
			b.WriteString(key)
		} else {
			b.WriteString("[")
			appendString(b, key)
			b.WriteString("]")
		}
		b.WriteString(" = ")
		appendValue(b, v, depth+1)
	}
	b.WriteString("}")
}

// space separates entries: by lines in the outer tables, by spaces in the others.
func space(b *strings.Builder, depth int, first bool) {
	switch {
	case depth < 2:
		b.WriteString("\n" + strings.Repeat("\t", depth+1))
	case !first:
		b.WriteString(" ")
	}
}

// appendString appends a Lua string. All bytes other than printable ASCII are escaped.
func appendString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(b, "\\%03d", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
