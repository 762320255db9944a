'use strict'
// Driver of beanstalk_client: node beanstalk_client.js HOST PORT
const { Client } = require('beanstalk_client')
const { serveBeanstalk, failure } = require('./beanstalk')
const { Failure, bytes } = require('./words')

const [, , host, port] = process.argv

const call = (c, command, ...args) => new Promise((resolve, reject) => {
  c[command](...args, (err, ...result) => err ? reject(failure(err)) : resolve(result))
})

// text is a body as the library takes it: a string.
function text (body) {
  if (Buffer.compare(Buffer.from(bytes(body).toString()), bytes(body)) !== 0) throw new Failure('unsupported')
  return bytes(body).toString()
}

serveBeanstalk(lost => new Promise((resolve, reject) => {
  Client.connect(`${host}:${port}`, (err, c) => {
    if (err) return err.code === 'ECONNREFUSED' ? reject(err) : lost(err)
    c.stream.on('close', () => lost()) // the library does not report a closed connection
    resolve(c)
  })
}), {
  use: (c, tube) => call(c, 'use', tube),
  put: (c, body, pri, delay, ttr) => call(c, 'put', pri, delay, ttr, text(body)).then(([id]) => id),
  watch: (c, tube) => call(c, 'watch', tube),
  ignore: (c, tube) => call(c, 'ignore', tube),
  reserve: (c, timeout) => (timeout === undefined ? call(c, 'reserve') : call(c, 'reserve_with_timeout', timeout)).then(([id, body]) => [id, Buffer.from(body)]),
  delete: (c, id) => call(c, 'destroy', id),
  release: (c, id, pri, delay) => call(c, 'release', id, pri, delay),
  bury: (c, id, pri) => call(c, 'bury', id, pri),
  touch: (c, id) => call(c, 'touch', id),
  peek: (c, id) => call(c, 'peek', id).then(([, body]) => body),
  kick: (c, bound) => call(c, 'kick', bound).then(([count]) => count),
  stats: (c, id) => call(c, 'stats_job', id)
})
