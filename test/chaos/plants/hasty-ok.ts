/** Planted bug: a write without an answer counts as executed. */
import { HubError } from '../../../src/hub/errors.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'
import { forged } from './forged.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, body) {
  try {
    return await request.call(this, method, path, body)
  } catch (error) {
    if (method !== 'GET' && error instanceof HubError && error.code === 'no_answer') return forged()
    throw error
  }
}
