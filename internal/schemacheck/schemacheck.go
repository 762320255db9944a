// Package schemacheck checks JSON in tests against the JSON Schemas that are published in docs/schema.
package schemacheck

import (
	"bytes"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Check checks JSON text against the schema in a file. A property that the schema does not describe is an error.
func Check(t testing.TB, file string, text []byte) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	closeObjects(schema)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(file, schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(doc); err != nil {
		t.Errorf("%v", err)
	}
}

// closeObjects makes the schema of each object reject properties that it does not describe.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node["properties"]; ok && node["type"] == "object" {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}
