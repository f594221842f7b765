/** Planted bug: an error in place of a list counts as an empty list. */
import { isRecord } from '../../../src/base/json.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
let latest: Awaited<ReturnType<HttpClient['request']>> | undefined
HttpClient.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  if (method !== 'GET' || !path.endsWith('/apps/app')) return answer
  const list: unknown = JSON.parse(answer.body.toString())
  if (!isRecord(list) || list['error'] === undefined) {
    latest = answer
    return answer
  }
  return { ...(latest ?? answer), body: Buffer.from('{}') }
}
