package inject

import (
	"fmt"
	"maps"

	"github.com/expr-lang/expr"
)

// Expression compiles an expression of the language of fault scripts for faults outside of a server, for example of
// clients. It can call the functions that do not need a server. A variable that does not exist is nil. Expression
// panics if the expression is malformed, and the result if it cannot be evaluated.
func Expression(source string) func(variables map[string]any) any {
	program, err := expr.Compile(source, expr.DisableBuiltin("len"))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", source, err))
	}
	return func(variables map[string]any) any {
		env := maps.Clone(functions)
		maps.Copy(env, variables)
		v, err := expr.Run(program, env)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", source, err))
		}
		return v
	}
}
