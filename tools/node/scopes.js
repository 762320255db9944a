// Tokenizes files with the grammar of transcripts, as editors do: node scopes.js GRAMMAR FILE...
// Writes a JSON array with one array per file, with one array per line, with one [start, end, scope] per token.
// scope is the innermost scope. Positions are in UTF-16 code units.
const fs = require("fs");
const path = require("path");
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

async function main([grammarFile, ...files]) {
  const wasm = fs.readFileSync(path.join(path.dirname(require.resolve("vscode-oniguruma")), "onig.wasm"));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(grammarFile, "utf8"), grammarFile),
  });
  const grammar = await registry.loadGrammar("source.wire");
  const all = files.map((file) => {
    let stack = textmate.INITIAL;
    return fs.readFileSync(file, "utf8").split("\n").map((line) => {
      const result = grammar.tokenizeLine(line, stack);
      stack = result.ruleStack;
      return result.tokens.map((t) => [t.startIndex, Math.min(t.endIndex, line.length), t.scopes[t.scopes.length - 1]]);
    });
  });
  process.stdout.write(JSON.stringify(all));
}

main(process.argv.slice(2));
