'use strict'
// Driver of node-beanstalk: node node-beanstalk.js HOST PORT
const { Client } = require('node-beanstalk')
const { serveBeanstalk, failure } = require('./beanstalk')
const { bytes } = require('./words')

const [, , host, port] = process.argv

const serializer = { serialize: body => body, deserialize: body => body }

// The library returns null or false for some error responses, and throws the others.
const call = (c, command, ...args) => c[command](...args).then(result => {
  if (result === null) throw failure(command.startsWith('reserve') ? 'TIMED_OUT' : 'NOT_FOUND')
  if (result === false) throw failure('NOT_FOUND')
  return result
}, e => {
  const [status] = /^[A-Z_]{4,}$/.exec(e.code) ?? /(?<=status ')[A-Z_]+(?=')/.exec(e.message) ?? []
  throw status ? failure(status) : e
})

serveBeanstalk(async lost => {
  const c = new Client({ host, port: +port, serializer }) // the default serializer makes JSON text of a body
  await c.connect()
  c._conn.on('error', lost).on('close', lost) // the library does not report a closed connection
  return c
}, {
  use: (c, tube) => call(c, 'use', tube),
  put: (c, body, pri, delay, ttr) => call(c, 'put', bytes(body), ttr, pri, delay).then(job => job.id),
  watch: (c, tube) => call(c, 'watch', tube),
  ignore: (c, tube) => call(c, 'ignore', tube),
  reserve: (c, timeout) => (timeout === undefined ? call(c, 'reserve') : call(c, 'reserveWithTimeout', timeout)).then(job => [job.id, job.payload]),
  delete: (c, id) => call(c, 'delete', +id),
  release: (c, id, pri, delay) => call(c, 'release', +id, pri, delay),
  bury: (c, id, pri) => call(c, 'bury', +id, pri),
  touch: (c, id) => call(c, 'touch', +id),
  peek: (c, id) => call(c, 'peek', +id).then(job => job.payload),
  kick: (c, bound) => call(c, 'kick', bound),
  pause: (c, tube, seconds) => call(c, 'pauseTube', tube, seconds),
  stats: (c, id) => call(c, 'statsJob', +id)
})
