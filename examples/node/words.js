'use strict'
// What every driver here needs: reading tasks, writing answers. Words are strings of
// bytes, one a character ('latin1'); Buffers are taken for what they contain.

console.log = console.error // standard output is for answers; some libraries print to it

const letter = { 0: '\0', t: '\t', n: '\n', r: '\r', '\\': '\\', '"': '"' }

function split (line) {
  return Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"(?:\*(\d+))?|([^ \t\n]+)/gs), ([, quoted, times, bare]) => {
    if (bare !== undefined) return bare
    const word = quoted.replace(/\\(?:x(..)|(.))/gs, (_, hex, c) => hex ? String.fromCharCode(parseInt(hex, 16)) : letter[c])
    return times === undefined ? word : word.repeat(times)
  })
}

function quote (word) {
  const s = Buffer.isBuffer(word) ? word.toString('latin1') : String(word)
  if (/^[-A-Za-z0-9_.,:;/+@%]+$/.test(s)) return s
  return '"' + s.replace(/[^ !#-[\]-~]/gs, c => '\\x' + (c.charCodeAt(0) & 255).toString(16).padStart(2, '0')) + '"'
}

// options turns words such as pri=5 into { pri: '5' }. No library here documents null or undefined as a body.
function options (words) {
  if (words.includes('nil')) throw new Failure('unsupported')
  return Object.fromEntries(words.map(w => [w.split('=', 1)[0], w.slice(w.indexOf('=') + 1)]))
}

// Failure is the answer "error CODE WORD...".
class Failure extends Error {
  constructor (code, ...words) {
    super(code)
    this.answer = ['error', code, ...words]
  }
}

// serve carries out tasks, one after the other, until there are no more. A task is a
// function of the words after its name; what it returns is printed after "ok".
async function serve (tasks) {
  let rest = ''
  for await (const chunk of process.stdin.setEncoding('latin1')) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()
    for (const line of lines) {
      const [name, ...words] = split(line)
      let answer
      try {
        if (!tasks[name]) throw new Failure('unsupported')
        answer = ['ok', ...(await tasks[name](...words)) ?? []]
      } catch (e) {
        answer = e.answer ?? ['error', /ECONN|EPIPE|closed/.test(e.code ?? e.message) ? 'connection' : 'other', e.message]
      }
      process.stdout.write(answer.map(quote).join(' ') + '\n', 'latin1')
    }
  }
  process.exit(0) // whatever the library still waits for
}

const bytes = word => Buffer.from(word, 'latin1')

module.exports = { serve, options, bytes, Failure }
