/** Planted bug: every request contains the API key, even the requests that search for the hub. */
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = function (method, path, sending) {
  return request.call(this, method, path, { ...sending, key: true })
}
