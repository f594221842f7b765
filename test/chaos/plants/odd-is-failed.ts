/** Planted bug: an unusual success answer to a write counts as a failure. */
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  const isUsual = ['', 'null', 'true', '{}'].includes(answer.body.toString())
  return method === 'GET' || answer.status >= 300 || isUsual ? answer : { ...answer, body: Buffer.from('false') }
}
