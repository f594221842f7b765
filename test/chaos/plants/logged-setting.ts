/** Planted bug: the values of written settings are logged. */
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = function (method, path, body) {
  if (method === 'PUT' && path.includes('/setting/')) console.log(JSON.stringify({ level: 'debug', path, body }))
  return request.call(this, method, path, body)
}
