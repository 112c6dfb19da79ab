// Renders a chart as Helm would, as far as ours goes: what it takes of Helm's functions is here.
//
//	go run render.go CHART <DATA.json
//
// Prints one document after the other; ends with 2 where a template makes no sense or names a value that there is not.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

func main() {
	var data map[string]any
	fail(json.NewDecoder(os.Stdin).Decode(&data))
	functions := template.FuncMap{
		"quote":     func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"toJson": func(value any) (string, error) {
			text, err := json.Marshal(value)
			return string(text), err
		},
		"default": func(usual, value any) any {
			if value == nil || value == "" {
				return usual
			}
			return value
		},
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*.yaml"))
	fail(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		fail(err)
		parsed, err := template.New(filepath.Base(path)).Option("missingkey=error").Funcs(functions).Parse(string(text))
		fail(err)
		fmt.Println("---")
		fail(parsed.Execute(os.Stdout, data))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
