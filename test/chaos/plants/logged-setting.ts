/** A bug on purpose: the value of a setting is logged when it is written. */
import { Rest } from '../../../src/hub/rest.ts'

const { request } = Rest.prototype
Rest.prototype.request = function (method, path, body) {
  if (method === 'PUT' && path.includes('/setting/')) console.log(JSON.stringify({ level: 'debug', path, body }))
  return request.call(this, method, path, body)
}
