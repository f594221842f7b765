/** Planted bug: every request has the key, including those that search for the hub. */
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = function (method, path, sending) {
  return request.call(this, method, path, { ...sending, key: true })
}
