/** A bug on purpose: a hub that does not say who it is is another one than before. */

import { header } from '../../../src/hub/answer.ts'
import { HubClient } from '../../../src/hub/client.ts'
import { Rest } from '../../../src/hub/rest.ts'

const { request } = Rest.prototype
let latest: string | null = null
Rest.prototype.request = async function (method, path, sending) {
  const answer = await request.call(this, method, path, sending)
  if (path.endsWith('/ping')) latest = header(answer, 'x-homey-id')
  return answer
}

const { identify } = HubClient.prototype
HubClient.prototype.identify = async function () {
  return { ...(await identify.call(this)), id: latest }
}
