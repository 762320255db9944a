'use strict'
// Driver of beanstalkd: node beanstalkd.js HOST PORT
const Client = require('beanstalkd').default
const { serveBeanstalk, failure } = require('./beanstalk')
const { bytes } = require('./words')

const [, , host, port] = process.argv

// The message of an error is the first word of the response. A lost connection rejects the calls that wait.
const call = (c, command, ...args) => c[command](...args).catch(e => {
  throw /^[A-Z_]+$/.test(e.message) && e.message !== 'CONNECTION_CLOSED' ? failure(e.message) : e
})

serveBeanstalk(async lost => {
  const c = await new Client(host, +port).connect()
  c.on('close', () => lost())
  return c
}, {
  use: (c, tube) => call(c, 'use', tube),
  put: (c, body, pri, delay, ttr) => call(c, 'put', pri, delay, ttr, bytes(body)),
  watch: (c, tube) => call(c, 'watch', tube),
  ignore: (c, tube) => call(c, 'ignore', tube),
  reserve: (c, timeout) => timeout === undefined ? call(c, 'reserve') : call(c, 'reserveWithTimeout', timeout),
  delete: (c, id) => call(c, 'destroy', id),
  release: (c, id, pri, delay) => call(c, 'release', id, pri, delay),
  bury: (c, id, pri) => call(c, 'bury', id, pri),
  touch: (c, id) => call(c, 'touch', id),
  peek: (c, id) => call(c, 'peek', id).then(([, body]) => body),
  kick: undefined, // only kick-job
  pause: (c, tube, seconds) => call(c, 'pauseTube', tube, seconds),
  stats: (c, id) => call(c, 'statsJob', id)
})
