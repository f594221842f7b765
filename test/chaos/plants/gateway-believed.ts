/** A bug on purpose: whoever answers a write is taken for the hub. */
import { Rest } from '../../../src/hub/rest.ts'
import { forged } from './forged.ts'

const { request } = Rest.prototype
Rest.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  return method === 'GET' || answer.status >= 300 ? answer : { ...answer, headers: forged().headers }
}
