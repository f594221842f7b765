/** Planted bug: a hub without an id counts as a different hub. */
import { header } from '../../../src/hub/answer.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  if (!path.endsWith('/ping') || answer.status !== 200 || header(answer, 'x-homey-id') !== null) return answer
  return { ...answer, headers: { ...answer.headers, 'x-homey-id': 'nobody' } }
}
