/** Forges an answer from the hub for several planted bugs: `null`, with the hub's last known id. */
import { type Answer, header } from '../../../src/hub/answer.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'

let id: string | null = null

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  id = header(answer, 'x-homey-id') ?? id
  return answer
}

export function forged(): Answer {
  return { status: 200, headers: id === null ? {} : { 'x-homey-id': id }, body: Buffer.from('null') }
}
