/** Planted bug: any answer to a write counts as the hub's. */
import { HttpClient } from '../../../src/hub/http-client.ts'
import { forged } from './forged.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  return method === 'GET' || answer.status >= 300 ? answer : { ...answer, headers: forged().headers }
}
