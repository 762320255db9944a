// Command site writes the documentation as a static site: README.md, the pages in docs and those that they link to, a page for
// each finding and each rule, and a search that works without a server. All links between pages are relative, so the site works
// from a folder and below any address. "make site" calls it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "folder of the repository")
	out := flag.String("o", "bin/site", "folder of the site, which is replaced")
	flag.Parse()
	files, err := build(*root)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.RemoveAll(*out); err != nil {
		log.Fatal(err)
	}
	size := 0
	for name, data := range files {
		size += len(data)
		file := filepath.Join(*out, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o777)
		if err == nil {
			err = os.WriteFile(file, data, 0o666)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%s: %d files, %.1f MB\n", *out, len(files), float64(size)/1e6)
}
