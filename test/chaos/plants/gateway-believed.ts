/** Planted bug: every answer to a write counts as an answer from the hub. */
import { HttpClient } from '../../../src/hub/http-client.ts'
import { forged } from './forged.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  return method === 'GET' || answer.status >= 300 ? answer : { ...answer, headers: forged().headers }
}
