/** Planted bug: an install without an answer counts as executed if the app exists, even if it existed before. */
import { HubError } from '../../../src/hub/errors.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'
import { forged } from './forged.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  try {
    return await request.call(this, method, path, sending)
  } catch (error) {
    if (!path.endsWith('/store') || !(error instanceof HubError) || error.code !== 'no_answer') throw error
    const { id }: { id?: unknown } = JSON.parse(sending.body ?? '{}')
    const list = await request.call(this, 'GET', path.replace('/store', '/app'), { key: true })
    if (!list.body.toString().includes(JSON.stringify(id))) throw error
    return forged()
  }
}
