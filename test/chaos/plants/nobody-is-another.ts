/** A bug on purpose: a hub that does not say who it is is another one than before. */
import { header } from '../../../src/hub/answer.ts'
import { Rest } from '../../../src/hub/rest.ts'

const { request } = Rest.prototype
Rest.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  if (!path.endsWith('/ping') || answer.status !== 200 || header(answer, 'x-homey-id') !== null) return answer
  return { ...answer, headers: { ...answer.headers, 'x-homey-id': 'nobody' } }
}
