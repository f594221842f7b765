/** Planted bug: every 404 confirms a removal, even if the hub did not send the 404. */
import { HubError } from '../../../src/hub/errors.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'
import { forged } from './forged.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  try {
    return await request.call(this, method, path, sending)
  } catch (error) {
    if (method !== 'DELETE' || !(error instanceof HubError) || error.code !== 'no_answer') throw error
    const check = await request.call(this, 'GET', path.replace(/\?.*/, ''), { key: true })
    if (check.status !== 404) throw error
    return forged()
  }
}
